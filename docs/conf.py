"""How Sphinx makes the site: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "extensions"))
sys.path.insert(0, str(HERE.parent / "src"))

import members  # noqa: E402

import latem  # noqa: E402

project = "latem"
author = "the latem developers"
copyright = author
version = release = latem.__version__
language = "en"
smartquotes = False  # -- is no dash in options

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "command_line",
    "mathml",
    "repository_links",
]
suppress_warnings = ["config.cache"]  # functions in autosummary_context cannot be kept
templates_path = ["templates"]
exclude_patterns = ["generated/gallery/**/*.ipynb", "templates", "extensions", "static"]
highlight_language = "text"
nitpicky = True
# Names of other libraries: their documentation is not fetched.
nitpick_ignore_regex = [
    (r"py:.*", rf"({library})\..*")
    for library in ("numpy", "np", "pandas", "pd", "sklearn", "scipy", "matplotlib", "joblib")
]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

autosummary_generate = True
autosummary_context = {
    "is_model": members.is_model,
    "shown": members.shown,
    "kind": members.kind,
}
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_docstring_signature = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 600,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "latem"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_sidebars = {"**": ["all-pages.html"]}
html_theme_options = {
    "logo": {"text": "latem"},
    "navbar_center": [],
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}

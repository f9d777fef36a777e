"""Reports: a summary as plain data → one HTML file that needs nothing else.

`page.py` and `evaluation_page.py` need jinja2 and matplotlib; the rest does without them.
"""

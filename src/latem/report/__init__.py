"""Reports: a summary as plain data → one HTML file that needs nothing else."""

from latem.report.page import write_gallery, write_report

__all__ = ["write_gallery", "write_report"]

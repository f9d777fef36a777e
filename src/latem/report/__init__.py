"""Reports: a summary as plain data → one HTML file that needs nothing else."""

from latem.report.evaluation_page import write_evaluation
from latem.report.page import write_gallery, write_report

__all__ = ["write_evaluation", "write_gallery", "write_report"]

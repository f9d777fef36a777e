"""Models as ONNX graphs, for programs without latem: see `latem.export.onnx_file`."""

from latem.export.onnx_file import OnnxExport, export_onnx
from latem.export.translators import translates

__all__ = ["OnnxExport", "export_onnx", "translates"]

"""The image side: pictures → vectors, by encoders trained elsewhere."""

from latem.datasets.picture_files import PictureError, find_pictures
from latem.features.embed import Embedded, embed_pictures
from latem.features.encoder import Encoder, Preprocessing
from latem.features.encoders import DEFAULT_ENCODER, encoder_spec, load_encoder
from latem.features.pictures import read_picture

__all__ = [
    "DEFAULT_ENCODER",
    "Embedded",
    "Encoder",
    "PictureError",
    "Preprocessing",
    "embed_pictures",
    "encoder_spec",
    "find_pictures",
    "load_encoder",
    "read_picture",
]

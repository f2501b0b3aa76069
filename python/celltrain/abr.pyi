# Written by scripts/generate_models.py.
from celltrain.model.types import Abr as Abr
from celltrain.model.types import Allocator as Allocator
from celltrain.model.types import Class as Class
from celltrain.model.types import Efci as Efci
from celltrain.model.types import EqualShare as EqualShare
from celltrain.model.types import Erica as Erica
from celltrain.model.types import EricaPlus as EricaPlus
from celltrain.model.types import Gfr as Gfr
from celltrain.model.types import MaxMin as MaxMin
from celltrain.model.types import RateFormat as RateFormat
from celltrain.model.types import Times as Times
from celltrain.model.types import VcOptions as VcOptions

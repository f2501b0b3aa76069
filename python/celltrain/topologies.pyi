# Written by scripts/generate_models.py.
from celltrain.model.types import Chain as Chain
from celltrain.model.types import Flow as Flow
from celltrain.model.types import GeneralNetwork as GeneralNetwork
from celltrain.model.types import Internetwork as Internetwork
from celltrain.model.types import LeafSpine as LeafSpine
from celltrain.model.types import Link as Link
from celltrain.model.types import NSource as NSource
from celltrain.model.types import Star as Star
from celltrain.model.types import StarPattern as StarPattern
from celltrain.model.types import Topology as Topology
from celltrain.model.types import VcMerge as VcMerge

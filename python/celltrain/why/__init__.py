"""What happened to a flow around an instant, in sentences that follow from the events of the run."""

from celltrain.why.run import Sentence as Sentence
from celltrain.why.run import Why as Why
from celltrain.why.run import why as why

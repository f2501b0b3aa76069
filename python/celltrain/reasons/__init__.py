"""What happened to a flow around an instant, in sentences that follow from the events of the run."""

from celltrain.reasons.run import Sentence as Sentence
from celltrain.reasons.run import Why as Why
from celltrain.reasons.run import why as why

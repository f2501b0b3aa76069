"""What happened to a flow around an instant, in sentences that follow from the events of the run."""

from celltrain.reasons.episodes import Episodes as Episodes
from celltrain.reasons.episodes import Silence as Silence
from celltrain.reasons.episodes import episodes as episodes
from celltrain.reasons.run import Sentence as Sentence
from celltrain.reasons.run import Why as Why
from celltrain.reasons.run import why as why

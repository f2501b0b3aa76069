"""What happened to a flow around an instant, in sentences that follow from the events of the run."""

from celltrain.inspect.reasons.episodes import Episodes as Episodes
from celltrain.inspect.reasons.episodes import Silence as Silence
from celltrain.inspect.reasons.episodes import episodes as episodes
from celltrain.inspect.reasons.run import Sentence as Sentence
from celltrain.inspect.reasons.run import Why as Why
from celltrain.inspect.reasons.run import why as why

//! Which name was meant where one is wrong.

use celltrain_core::stop::{Interrupted, Stop};

use crate::fault::{KeyFault, nearest};

/// The name that was meant, perhaps. Among many faults none is a slip, and looking through all names for each would
/// take its time.
pub(crate) fn hint<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    faults: &[KeyFault],
    stop: &Stop<'_>,
) -> Result<Option<&'a str>, Interrupted> {
    const MOST: usize = 100;
    if faults.len() < MOST { closest(given, names, stop) } else { Ok(None) }
}

/// The name most like `given`, if one is like enough to be meant.
pub(crate) fn closest<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    stop: &Stop<'_>,
) -> Result<Option<&'a str>, Interrupted> {
    let mut stopped = Ok(());
    let found = nearest(given, stop.each(names).map_while(|name| name.map_err(|error| stopped = Err(error)).ok()));
    stopped.map(|()| found)
}

/// A question to put into a message, with a space behind it; empty where no name was meant.
pub(crate) fn did_you_mean(meant: Option<&str>) -> String {
    meant.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default()
}

//! Suggestions for misspelt names.

use celltrain_core::cancellation::CancellationToken;

use crate::fault::{KeyFault, nearest};

/// Returns a suggestion of the name that the user probably meant. If there are many faults, gives no suggestion,
/// because many faults are unlikely to be typing errors, and each search takes time.
pub(crate) fn hint<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    faults: &[KeyFault],
    token: &CancellationToken<'_>,
) -> Option<&'a str> {
    const MOST: usize = 100;
    if faults.len() < MOST { closest(given, names, token) } else { None }
}

/// Returns the name most similar to `given`; `None` if no name is similar enough, or if the token cancels the search.
pub(crate) fn closest<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    token: &CancellationToken<'_>,
) -> Option<&'a str> {
    nearest(given, token.each(names).map_while(Result::ok))
}

/// Formats a suggestion for a message, followed by a space; empty if there is no suggestion.
pub(crate) fn did_you_mean(meant: Option<&str>) -> String {
    meant.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default()
}

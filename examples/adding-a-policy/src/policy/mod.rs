//! The core's policies and the one of the page.

pub use celltrain_core::policy::*;

pub mod per_vc_dynamic_threshold;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_of_the_policy_passes_its_check() {
        assert!(per_vc_dynamic_threshold::sample(100).check(Some(100), &[]).is_empty());
    }
}

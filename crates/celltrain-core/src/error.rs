//! Faults of settings.

pub use celltrain_formula::SettingFault as Fault;

//! The macro that defines lists of variants, such as policies, schedulers, TCP variants and topologies.
//!
//! ```ignore
//! pub mod tail_drop;
//!
//! registry! {
//!     /// The discard algorithm of an edge device, as a scenario names it.
//!     #[schemars(rename = "EdgeDiscard")]
//!     pub enum DiscardConfig(module::Config) {
//!         /// Tail drop: a packet that finds no room is refused.
//!         tail_drop: TailDrop,
//!     }
//!
//!     /// Returns the algorithm for these VCs, before the first packet arrives.
//!     pub fn build(&self, packets: &Packets) -> Box<dyn Discard> {
//!         |config| Box::new(config.build(packets))
//!     }
//! }
//! ```
//!
//! Each line names a module and a variant. The module's name is the name in scenarios (`[edge.discard.tail_drop]`); it
//! must be the variant's name in snake case, as serde writes it, or the line needs `#[serde(rename = "dfba_1998")]`.
//! The list above expands to `enum DiscardConfig { TailDrop(tail_drop::Config) }` with its serde and schema derives,
//! `DiscardConfig::NAMES`, `name`, and `build` with a `match` over the variants.
//!
//! There are three kinds of lists:
//!
//! | declaration | a variant holds | also generated |
//! |---|---|---|
//! | `enum Kind(module::Config)` | its own settings | `From<module::Config>` |
//! | `enum Kind(Options)` | the settings that all variants share | `Kind::named(name, options)` |
//! | `enum Kind` | nothing | `Kind::ALL`, and a default (the line under `#[default]`) |
//!
//! There are also four kinds of functions, each with one expression for all variants:
//!
//! | function | its value |
//! |---|---|
//! | `(&self, ..) { \|config\| .. }` | the expression, applied to the variant's settings |
//! | `(&self, ..) { \|config, type Line\| .. }` | the same; `Line` is the type of the variant's name in its module |
//! | `(self, ..) { \|type Line\| .. }` | the same, without settings |
//! | `(..) { \|mod module\| .. }` | a vector with the expression's value for each module, in the order of the list |
//!
//! `config`, `Line` and `module` are names that the function chooses. `cargo expand -p celltrain-core tcp::congestion`
//! shows the expansion.

/// Defines a list of variants and the functions they share, as described at the top of `registry.rs`.
#[macro_export]
macro_rules! registry {
    (@functions $lines:tt) => {};

    (@functions $lines:tt
        $(#[$about:meta])*
        $vis:vis fn $function:ident(&self $(, $argument:ident: $Argument:ty)*) -> $Answer:ty { $($answer:tt)* }
        $($rest:tt)*
    ) => {
        $(#[$about])*
        $vis fn $function(&self $(, $argument: $Argument)*) -> $Answer {
            $crate::registry! { @match self $lines $($answer)* }
        }
        $crate::registry! { @functions $lines $($rest)* }
    };

    (@functions $lines:tt
        $(#[$about:meta])*
        $vis:vis fn $function:ident(self $(, $argument:ident: $Argument:ty)*) -> $Answer:ty { $($answer:tt)* }
        $($rest:tt)*
    ) => {
        $(#[$about])*
        $vis fn $function(self $(, $argument: $Argument)*) -> $Answer {
            $crate::registry! { @match self $lines $($answer)* }
        }
        $crate::registry! { @functions $lines $($rest)* }
    };

    (@functions $lines:tt
        $(#[$about:meta])*
        $vis:vis fn $function:ident($($argument:ident: $Argument:ty),*) -> $Answer:ty { $($answer:tt)* }
        $($rest:tt)*
    ) => {
        $(#[$about])*
        $vis fn $function($($argument: $Argument),*) -> $Answer {
            $crate::registry! { @each $lines $($answer)* }
        }
        $crate::registry! { @functions $lines $($rest)* }
    };

    (@match $this:ident { $($module:ident: $Variant:ident,)* } |$settings:ident| $answer:expr) => {
        match $this {
            $(Self::$Variant($settings) => $answer,)*
        }
    };

    (@match $this:ident { $($module:ident: $Variant:ident,)* } |$settings:ident, type $Line:ident| $answer:expr) => {
        match $this {
            $(Self::$Variant($settings) => {
                use $module::$Variant as $Line;
                $answer
            })*
        }
    };

    (@match $this:ident { $($module:ident: $Variant:ident,)* } |type $Line:ident| $answer:expr) => {
        match $this {
            $(Self::$Variant => {
                use $module::$Variant as $Line;
                $answer
            })*
        }
    };

    (@each { $($module:ident: $Variant:ident,)* } |mod $file:ident| $answer:expr) => {
        vec![$({
            use $module as $file;
            $answer
        }),*]
    };

    (@names $Kind:ident { $($module:ident: $Variant:ident,)* }) => {
        impl $Kind {
            /// Every name, in the order of the list.
            pub const NAMES: &[&str] = &[$(stringify!($module)),*];

            /// Returns the variant's name in scenarios.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Variant { .. } => stringify!($module),)*
                }
            }
        }
    };

    (
        $(#[$about:meta])*
        $vis:vis enum $Kind:ident(module::Config) { $($(#[$line:meta])* $module:ident: $Variant:ident,)* }
        $($functions:tt)*
    ) => {
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        $(#[$about])*
        $vis enum $Kind {
            $($(#[$line])* $Variant($module::Config),)*
        }

        $(impl From<$module::Config> for $Kind {
            fn from(config: $module::Config) -> Self {
                Self::$Variant(config)
            }
        })*

        $crate::registry! { @names $Kind { $($module: $Variant,)* } }

        impl $Kind {
            $crate::registry! { @functions { $($module: $Variant,)* } $($functions)* }
        }
    };

    (
        $(#[$about:meta])*
        $vis:vis enum $Kind:ident($Options:ident) { $($(#[$line:meta])* $module:ident: $Variant:ident,)* }
        $($functions:tt)*
    ) => {
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        $(#[$about])*
        $vis enum $Kind {
            $($(#[$line])* $Variant($Options),)*
        }

        $crate::registry! { @names $Kind { $($module: $Variant,)* } }

        impl $Kind {
            /// Returns the variant with the given name and options.
            pub fn named(name: &str, options: $Options) -> Option<Self> {
                match name {
                    $(stringify!($module) => Some(Self::$Variant(options)),)*
                    _ => None,
                }
            }

            $crate::registry! { @functions { $($module: $Variant,)* } $($functions)* }
        }
    };

    (
        $(#[$about:meta])*
        $vis:vis enum $Kind:ident { $($(#[$line:meta])* $module:ident: $Variant:ident,)* }
        $($functions:tt)*
    ) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        $(#[$about])*
        $vis enum $Kind {
            $($(#[$line])* $Variant,)*
        }

        $crate::registry! { @names $Kind { $($module: $Variant,)* } }

        impl $Kind {
            /// All variants, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$Variant),*];

            $crate::registry! { @functions { $($module: $Variant,)* } $($functions)* }
        }
    };
}

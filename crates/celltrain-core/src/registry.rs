//! One macro for every list of variants: a line in a list is all that makes a file known.
//!
//! ```ignore
//! registry! {
//!     /// The discard algorithm of an edge device, as a scenario names it.
//!     #[schemars(rename = "EdgeDiscard")]
//!     pub enum DiscardConfig(module::Config) {
//!         /// Tail drop: a packet that finds no room is refused.
//!         tail_drop: TailDrop,
//!     }
//!
//!     /// The algorithm for these VCs, none of which has a packet yet.
//!     pub fn build(&self, packets: &Packets) -> Box<dyn Discard> {
//!         |config| Box::new(config.build(packets))
//!     }
//! }
//! ```
//!
//! A line is a file beside the list and the variant's name in Rust; the file's name is its name in scenarios. serde
//! makes the same of the variant's name, but where a digit follows: then the line says
//! `#[serde(rename = "dfba_1998")]`. From the list above follow
//!
//! ```ignore
//! pub mod tail_drop;                                        // the file is compiled
//!
//! #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
//! #[serde(rename_all = "snake_case")]                       // a scenario says [edge.discard.tail_drop]
//! pub enum DiscardConfig {
//!     TailDrop(tail_drop::Config),                          // its table has the keys of this type
//! }
//!
//! impl From<tail_drop::Config> for DiscardConfig { .. }
//!
//! impl DiscardConfig {
//!     pub const NAMES: &[&str] = &["tail_drop"];
//!     pub fn name(&self) -> &'static str { .. }             // "tail_drop"
//!     pub fn build(&self, packets: &Packets) -> Box<dyn Discard> {
//!         match self {
//!             Self::TailDrop(config) => Box::new(config.build(packets)),
//!         }
//!     }
//! }
//! ```
//!
//! There are three kinds of lists:
//!
//! | the list says | a variant holds | beside, there is |
//! |---|---|---|
//! | `enum Kind(module::Config)` | settings of its own, a table | `From` of the settings |
//! | `enum Kind(Options)` | the same settings as the others, a table | `Kind::named(name, options)` |
//! | `enum Kind` | nothing: a word chooses it | `Kind::ALL`, and a default (the line under `#[default]`) |
//!
//! and four ways to say in one line what holds for every variant:
//!
//! | the function says | it gives |
//! |---|---|
//! | `(&self, ..) { \|config\| .. }` | what the words behind the bars say, of the settings of this variant |
//! | `(&self, ..) { \|config, type Line\| .. }` | the same; `Line` is the type of the variant's name in its file |
//! | `(self, ..) { \|type Line\| .. }` | the same, without settings |
//! | `(..) { \|mod module\| .. }` | a vector: what the words say of each file, in the order of the list |
//!
//! `cargo expand -p celltrain-core tcp::congestion` shows all of it. Everything that differs from list to list stands
//! beside it, as ordinary code. `Line` and `module` are names that the function chooses; `..` stands for its arguments,
//! each with its type, as many as there are.

/// Makes a list of variants; the head of `registry.rs` says what follows from it.
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

            /// Its name in scenarios.
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
        $(pub mod $module;)*

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
        $(pub mod $module;)*

        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        $(#[$about])*
        $vis enum $Kind {
            $($(#[$line])* $Variant($Options),)*
        }

        $crate::registry! { @names $Kind { $($module: $Variant,)* } }

        impl $Kind {
            /// The variant of this name with these options.
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
        $(pub mod $module;)*

        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        $(#[$about])*
        $vis enum $Kind {
            $($(#[$line])* $Variant,)*
        }

        $crate::registry! { @names $Kind { $($module: $Variant,)* } }

        impl $Kind {
            /// All of them, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$Variant),*];

            $crate::registry! { @functions { $($module: $Variant,)* } $($functions)* }
        }
    };
}

//! Tunables: numbers that decide how kernels are shaped, never what they compute.

/// One tunable of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunable {
    /// Name in files and reports.
    pub name: &'static str,
    /// The values that are worth measuring; with fewer than two it is not measured.
    pub values: &'static [usize],
}

/// A value of one tunable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuned {
    /// The tunable.
    pub name: &'static str,
    /// Its value.
    pub value: usize,
}

/// The struct of a backend's tunables: a documented field each, its portable default, and the values worth measuring.
#[macro_export]
macro_rules! tunables {
    ($(#[$about:meta])* $vis:vis struct $name:ident {
        $($(#[$doc:meta])* $field:ident: $default:literal $(in [$($value:literal),+])?,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis struct $name { $($(#[$doc])* $vis $field: usize,)+ }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)+ }
            }
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$crate::Tunable] =
                &[$($crate::Tunable { name: stringify!($field), values: &[$($($value),+)?] },)+];

            /// All values.
            pub fn values(&self) -> Vec<$crate::Tuned> {
                vec![$($crate::Tuned { name: stringify!($field), value: self.$field },)+]
            }

            /// With another value of one of them.
            ///
            /// *Errors*: no tunable has this name, or the value is none of those that may be measured.
            pub fn with(mut self, name: &str, value: usize) -> Result<$name, String> {
                let known = Self::ALL.iter().find(|t| t.name == name);
                let Some(known) = known.filter(|t| t.values.contains(&value)) else {
                    return Err(format!("{name} = {value} is not a tunable of this version; tune again"));
                };
                $(if known.name == stringify!($field) { self.$field = value; })+
                Ok(self)
            }
        }
    };
}

//! Conversions of a type from and to its text, for serde.

/// Implements `TryFrom<String>` by `FromStr`, whose error is given, and `From` for `String` by `Display`: what
/// `#[serde(try_from = "String", into = "String")]` needs.
#[macro_export]
macro_rules! text_form {
    ($type:ty, $error:ty) => {
        impl TryFrom<String> for $type {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}

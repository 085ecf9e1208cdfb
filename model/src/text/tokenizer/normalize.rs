//! Unicode normalization forms, by tables natively and by the browser in browsers, whose pages then need no tables.
//!
//! *Source*: Unicode Standard Annex 15.

use std::borrow::Cow;

/// Composes letters and the accents that follow them (NFC).
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { text.into() } else { form::nfc(text).into() }
}

/// Decomposes letters with accents (NFD).
pub fn decomposed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { text.into() } else { form::nfd(text).into() }
}

#[cfg(not(target_arch = "wasm32"))]
mod form {
    use unicode_normalization::UnicodeNormalization;

    pub fn nfc(text: &str) -> String {
        text.nfc().collect()
    }

    pub fn nfd(text: &str) -> String {
        text.nfd().collect()
    }
}

#[cfg(target_arch = "wasm32")]
mod form {
    use js_sys::JsString;

    pub fn nfc(text: &str) -> String {
        JsString::from(text).normalize("NFC").into()
    }

    pub fn nfd(text: &str) -> String {
        JsString::from(text).normalize("NFD").into()
    }
}

//! The entry for fuzzers.

use super::Gguf;

/// Feeds bytes through everything that a file's content reaches before weights are loaded. Whatever the bytes are,
/// this must return.
pub fn fuzz_one(bytes: &[u8]) {
    let Ok(gguf) = Gguf::from_bytes(bytes) else { return };
    for (key, _) in gguf.metadata.iter() {
        let _ = gguf.metadata.get::<u32>(key);
    }
}

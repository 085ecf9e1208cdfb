//! Names that belong to who knows a secret.

use sha2::{Digest, Sha256};

/// The name of who knows a secret. Others see names, and cannot have them: the server asks for the secret.
pub fn name(secret: &str) -> String {
    let digest = Sha256::digest(secret);
    let digits: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("w{digits}")
}

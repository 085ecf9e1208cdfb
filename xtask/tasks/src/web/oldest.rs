//! Whether the oldest browsers can run a module: Chromium 80, Firefox 79, Safari 15.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use wasmparser::{ExternalKind, Payload, TypeRef, ValType, Validator, WasmFeatures};

/// Features of the oldest browsers beyond the first version of WebAssembly.
const FEATURES: WasmFeatures = WasmFeatures::FLOATS
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::BULK_MEMORY);

/// Checks a module.
///
/// *Errors*: it needs more of a browser than the oldest have.
pub fn check(file: &Path) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    examine(&bytes).with_context(|| format!("the oldest browsers cannot run {}", file.display()))
}

fn examine(module: &[u8]) -> Result<()> {
    let types = Validator::new_with_features(FEATURES).validate_all(module)?;
    let types = types.as_ref();
    let wide = |index| {
        let function = types[types.core_function_at(index)].unwrap_func();
        function.params().iter().chain(function.results()).any(|kind| *kind == ValType::I64)
    };
    let mut functions = 0;
    for payload in wasmparser::Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    if matches!(import.ty, TypeRef::Func(_)) {
                        refuse_wide(import.name, wide(functions))?;
                        functions += 1;
                    }
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    if export.kind == ExternalKind::Func {
                        refuse_wide(export.name, wide(export.index))?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Integers of 64 bits cross the border as a BigInt, in Chromium since version 85.
fn refuse_wide(name: &str, wide: bool) -> Result<()> {
    if wide {
        bail!("{name} takes or gives an integer of 64 bits");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module of one type and an imported function of that type.
    fn importing(signature: &[u8]) -> Vec<u8> {
        let mut module = b"\0asm\x01\0\0\0\x01".to_vec();
        module.extend([signature.len() as u8 + 1, 1]);
        module.extend(signature);
        module.extend(b"\x02\x07\x01\x01a\x01b\0\0");
        module
    }

    #[test]
    fn what_the_oldest_browsers_lack_is_refused() {
        // f(i32), f() -> (i32, i32), f(externref), f(v128), f(i64)
        examine(&importing(b"\x60\x01\x7f\0")).unwrap();
        for signature in [b"\x60\0\x02\x7f\x7f".as_slice(), b"\x60\x01\x6f\0", b"\x60\x01\x7b\0", b"\x60\x01\x7e\0"] {
            assert!(examine(&importing(signature)).is_err(), "{signature:x?}");
        }
    }
}

//! Decoders are held, bit for bit, to what the `gguf` package makes of the same blocks. `formats/make.py` made the files.

use backend_api::Format;
use std::path::Path;

#[test]
fn decoders_agree_with_those_of_gguf() {
    for format in Format::ALL {
        let (name, spec) = (format.name(), format.spec());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{name}.bin"));
        let file = std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}; run make.py", path.display()));
        let count = file.len() / (spec.block_bytes + 4 * spec.block_len);
        let (blocks, values) = file.split_at(count * spec.block_bytes);
        let expected: Vec<u32> = values.as_chunks().0.iter().map(|v| u32::from_le_bytes(*v)).collect();
        assert!(count >= 4 && expected.len() == count * spec.block_len, "{name} has {count} blocks");
        let mut found = vec![0.0; expected.len()];
        anygpu_reference_cpu::decode::row(*format, blocks, &mut found);
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            let wanted = f32::from_bits(expected);
            assert_eq!(found.to_bits(), expected, "{name}, element {i}: {found} instead of {wanted}");
        }
    }
}

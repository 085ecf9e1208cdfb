//! Tests with malformed files of every kind.

use super::writer::{Writer, string};
use super::*;

const F32: u32 = 0;

impl Writer {
    fn bad(&self) -> String {
        error(&self.bytes())
    }
}

fn error(bytes: &[u8]) -> String {
    let message = Gguf::from_bytes(bytes).expect_err("the file is bad").to_string();
    assert!(!message.contains('\n') && message.len() < 400, "{message}");
    message
}

#[track_caller]
pub(super) fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

fn small() -> Writer {
    Writer::default()
        .pair("general.architecture", 8, &string(b"llama"))
        .pair("u8", 0, &[200])
        .pair("i8", 1, &[200])
        .pair("i16", 3, &(-2i16).to_le_bytes())
        .pair("u64", 10, &u64::MAX.to_le_bytes())
        .pair("f32", 6, &0.5f32.to_le_bytes())
        .pair("f64", 12, &0.25f64.to_le_bytes())
        .pair("bool", 7, &[1])
        .array("ints", 5, 2, &[1, 0, 0, 0, 255, 255, 255, 255])
        .array("words", 8, 2, &[string("ä".as_bytes()), string(b"")].concat())
        .tensor("a", &[4, 2], F32, 0)
        .tensor("b", &[32], 8, 32)
        .data(66)
}

#[test]
fn a_small_file_is_read() {
    let bytes = small().bytes();
    let gguf = Gguf::from_bytes(&bytes).unwrap();
    let m = &gguf.metadata;
    assert_eq!(m.require::<&str>("general.architecture"), Ok("llama"));
    assert_eq!(m.require::<u32>("u8"), Ok(200));
    assert_eq!(m.value("i8"), Some(&Value::Int(-56)));
    assert_eq!(m.value("i16"), Some(&Value::Int(-2)));
    assert_eq!(m.require::<u64>("u64"), Ok(u64::MAX));
    assert_eq!(m.require::<f32>("f32"), Ok(0.5));
    assert_eq!(m.require::<f32>("f64"), Ok(0.25));
    assert_eq!(m.require::<bool>("bool"), Ok(true));
    assert_eq!(m.value("ints"), Some(&Value::Ints(vec![1, -1])));
    assert_eq!(m.require::<&std::sync::Arc<StringArray>>("words").unwrap().get(0), Some("ä"));
    let a = gguf.tensor("a").unwrap();
    assert_eq!((&a.shape[..], a.offset, a.bytes), (&[2, 4][..], gguf.data_offset, 32));
    let b = gguf.tensor("b").unwrap();
    assert_eq!((b.format, b.offset + b.bytes), (backend_api::Format::Q8_0, bytes.len() as u64));
    assert_eq!(gguf.tensor("c"), None);
    assert_eq!(Gguf::from_bytes(&small().with_counts(2, [2, 10])).unwrap().version, 2);
}

/// An author's name in Latin-1 keeps no file from being read.
#[test]
fn descriptions_may_be_in_any_encoding() {
    let file = Writer::default().pair("general.author", 8, &string(b"J\xf6rg")).array(
        "general.tags",
        8,
        2,
        &[string(b"chat"), string(b"\xff")].concat(),
    );
    let gguf = Gguf::from_bytes(&file.bytes()).unwrap();
    assert_eq!(gguf.metadata.require::<&str>("general.author"), Ok("J\u{fffd}rg"));
    assert_eq!(gguf.metadata.require::<&std::sync::Arc<StringArray>>("general.tags").unwrap().get(1), Some("\u{fffd}"));
}

#[test]
fn a_file_cut_at_any_byte_is_refused() {
    let bytes = small().bytes();
    for len in 0..bytes.len() {
        let message = error(&bytes[..len]);
        let expected = if len == 0 { "not a GGUF file" } else { "download it again" };
        says(&message, &[expected]);
    }
    says(&error(&bytes[..bytes.len() - 1]), &["the data of tensor \"b\"", &format!("byte {}", bytes.len() - 1)]);
}

/// A source that counts bytes read.
struct Counting(Vec<u8>, std::cell::Cell<u64>);

impl ByteSource for Counting {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        self.1.set(self.1.get() + buf.len() as u64);
        buf.copy_from_slice(&self.0[offset as usize..][..buf.len()]);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[test]
fn the_header_is_read_in_chunks_and_tensor_data_is_not() {
    let long: Vec<u8> = (0..200_000u64).flat_map(|i| string(format!("token {i}").as_bytes())).collect();
    let file = Writer::default()
        .array("words", 8, 200_000, &long)
        .array("scores", 6, 300_001, &vec![0; 4 * 300_001])
        .tensor("a", &[1 << 20, 4], F32, 0)
        .data(16 << 20)
        .bytes();
    let header = file.len() as u64 - (16 << 20);
    let source = Counting(file, 0.into());
    let read = pin!(Gguf::read(&source));
    let Poll::Ready(gguf) = read.poll(&mut Context::from_waker(Waker::noop())) else { panic!("memory is ready") };
    let gguf = gguf.unwrap();
    let words = gguf.metadata.require::<&std::sync::Arc<StringArray>>("words").unwrap();
    assert_eq!((words.len(), words.get(199_999)), (200_000, Some("token 199999")));
    assert_eq!(gguf.metadata.require::<Vec<f32>>("scores").unwrap().len(), 300_001);
    assert!(source.1.get() < header + (1 << 20), "{} bytes of a header of {header}", source.1.get());
}

#[test]
fn other_files_and_versions() {
    says(&error(b"PK\x03\x04 zip"), &["not a GGUF file", "50, 4b"]);
    says(&error(&small().with_counts(1, [0, 0])), &["version 1", "convert"]);
    says(&error(&small().with_counts(4, [0, 0])), &["version 4", "update"]);
    says(&error(&small().with_counts(3u32.swap_bytes(), [0, 0])), &["big-endian"]);
}

#[test]
fn absurd_counts_and_lengths() {
    says(&error(&small().with_counts(3, [u64::MAX, 0])), &["tensor count", "limit"]);
    says(&error(&small().with_counts(3, [0, u64::MAX])), &["metadata count", "limit"]);
    says(&error(&small().with_counts(3, [100_000, 0])), &["truncated", "100000 items"]);
    let huge = u64::MAX.to_le_bytes();
    says(&Writer::default().pair("k", 8, &huge).bad(), &["\"k\"", "above the limit"]);
    says(&Writer::default().pair("k", 8, &(1u64 << 27).to_le_bytes()).bad(), &["\"k\"", "truncated"]);
    for kind in [0, 5, 6, 8, 10] {
        says(&Writer::default().array("k", kind, u64::MAX / 2, b"").bad(), &["\"k\"", "above the limit"]);
        says(&Writer::default().array("k", kind, 1 << 24, b"").bad(), &["\"k\"", "truncated"]);
    }
    let name = "n".repeat(2000);
    says(&Writer::default().tensor(&name, &[1], F32, 0).data(4).bad(), &["name of tensor 0", "2000"]);
}

#[test]
fn bad_metadata() {
    says(&Writer::default().pair("k", 13, &[0; 8]).bad(), &["\"k\"", "value type 13"]);
    says(&Writer::default().pair("k", 7, &[2]).bad(), &["\"k\"", "neither 0 nor 1"]);
    says(&Writer::default().array("k", 9, 1, &[0; 16]).bad(), &["array of arrays"]);
    says(&Writer::default().array("k", 77, 1, &[0; 16]).bad(), &["value type 77"]);
    says(&Writer::default().pair("k", 8, &string(b"\xff")).bad(), &["\"k\"", "UTF-8"]);
    says(&Writer::default().array("k", 8, 1, &string(b"\xc3")).bad(), &["element 0", "UTF-8"]);
    says(&Writer::default().pair("k", 0, &[1]).pair("k", 0, &[1]).bad(), &["\"k\"", "twice"]);
    for bad in [0u32, 24, 1 << 21] {
        says(&Writer::default().pair("general.alignment", 4, &bad.to_le_bytes()).bad(), &["power of two"]);
    }
}

#[test]
fn bad_tensors() {
    let one = |dims: &[u64], kind, offset| Writer::default().tensor("t", dims, kind, offset).data(64).bad();
    says(&one(&[], F32, 0), &["\"t\"", "0 dimensions"]);
    says(&one(&[1; 5], F32, 0), &["\"t\"", "5 dimensions"]);
    says(&one(&[4, 0], F32, 0), &["\"t\"", "dimension is 0"]);
    says(&one(&[1 << 33, 1 << 33], F32, 0), &["\"t\"", "overflows"]);
    says(&one(&[u64::MAX], F32, 0), &["\"t\"", "overflows"]);
    says(&one(&[33], 2, 0), &["\"t\"", "33", "32"]);
    says(&one(&[4], F32, 4), &["\"t\"", "alignment 32"]);
    says(&one(&[4], F32, 4096), &["\"t\"", "out of range"]);
    says(&one(&[4], F32, u64::MAX - 31), &["\"t\"", "out of range"]);
    says(&one(&[17], F32, 0), &["\"t\"", "truncated"]);
    says(&one(&[256], 15, 0), &["\"t\"", "Q8_K", "Q4_K"]);
    says(&one(&[256], 99, 0), &["\"t\"", "99", "Q4_K"]);
    let two = |second: &str, offset| {
        Writer::default().tensor("t", &[16], F32, 0).tensor(second, &[16], F32, offset).data(128).bad()
    };
    says(&two("u", 32), &["\"u\"", "overlaps", "\"t\""]);
    says(&two("t", 64), &["\"t\"", "twice"]);
}

#[test]
fn names_cannot_break_messages() {
    let name = format!("a\n\u{1b}[31m{}", "x".repeat(900));
    says(&Writer::default().pair(&name, 77, &[]).bad(), &["a\\n\\u{1b}[31m"]);
    says(&Writer::default().tensor(&name, &[4], 99, 0).data(16).bad(), &["a\\n\\u{1b}[31m"]);
    let bytes = Writer::default().pair(&name, 0, &[1]).bytes();
    let message = Gguf::from_bytes(&bytes).unwrap().metadata.require::<&str>(&name).unwrap_err().to_string();
    assert!(!message.contains('\n') && message.len() < 400, "{message}");
}

//! Tests of split models: files in any order, of several models, incomplete, and beyond 4 GiB.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::super::tests::says;
use super::super::writer::{Writer, string};
use super::super::{ByteSource, BytesSource, Files, ReadFuture, Value};
use super::*;

const F32: u32 = 0;

/// Makes a file of a split model.
fn part(no: u16, count: u16, tensors: i32) -> Writer {
    Writer::default().pair(NO, 2, &no.to_le_bytes()).pair(COUNT, 2, &count.to_le_bytes()).pair(
        TENSORS,
        5,
        &tensors.to_le_bytes(),
    )
}

/// Makes three files: one with only metadata, one with a tensor, one with two.
fn three() -> [Vec<u8>; 3] {
    [
        part(0, 3, 3).pair("general.architecture", 8, &string(b"llama")).bytes(),
        part(1, 3, 3).tensor("a", &[4], F32, 0).data(16).bytes(),
        part(2, 3, 3).tensor("b", &[8], F32, 0).tensor("c", &[4], F32, 32).data(48).bytes(),
    ]
}

fn now<T>(future: impl Future<Output = T>) -> T {
    let Poll::Ready(result) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) else { panic!("not ready") };
    result
}

fn read_from(source: &dyn ByteSource) -> Result<Gguf, GgufError> {
    now(Gguf::read(source))
}

fn read(files: &[&[u8]]) -> Result<Gguf, GgufError> {
    read_from(&Files(files.iter().map(|file| BytesSource(*file)).collect()))
}

fn error(files: &[&[u8]]) -> String {
    let message = read(files).expect_err("the files are bad").to_string();
    assert!(!message.contains('\n') && message.len() < 400, "{message}");
    message
}

#[test]
fn files_in_any_order_are_one_model() {
    let files = three();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let given = order.map(|i: usize| &files[i][..]);
        let gguf = read(&given).unwrap();
        assert_eq!(gguf.metadata.value("general.architecture"), Some(&Value::String("llama".into())));
        let names: Vec<&str> = gguf.tensors.iter().map(|t| &*t.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let start = |file: usize| -> usize { order.iter().take_while(|f| **f != file).map(|f| files[*f].len()).sum() };
        for (tensor, (file, tail)) in gguf.tensors.iter().zip([(1, 16), (2, 48), (2, 16)]) {
            assert_eq!(tensor.offset as usize, start(file) + files[file].len() - tail, "{}", tensor.name);
        }
    }
}

#[test]
fn a_split_into_one_file_is_a_whole_model() {
    let one = part(0, 1, 1).tensor("a", &[4], F32, 0).data(16);
    assert_eq!(Gguf::from_bytes(&one.bytes()).unwrap().tensors.len(), 1);
}

#[test]
fn incomplete_models_name_what_is_missing() {
    let [first, middle, last] = three();
    let remedy = "choose all of them at once";
    says(&error(&[&middle]), &["3 files", "*-00001-of-00003.gguf, *-00003-of-00003.gguf;", remedy]);
    says(&error(&[&last, &first]), &["missing: *-00002-of-00003.gguf;", remedy]);
    let many = part(7, u16::MAX, 9).bytes();
    says(&error(&[&many]), &["65535 files", "*-00003-of-65535.gguf and 65531 more"]);
    assert!(matches!(read(&[]), Err(GgufError::Magic { .. })));
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let [first, middle, last] = three();
    says(&error(&[&first, &middle, &middle, &last]), &["file 2", "twice"]);
    let longer = part(1, 4, 3).tensor("a", &[4], F32, 0).data(16).bytes();
    says(&error(&[&first, &longer, &last]), &["file 2 of 4", "split.count is 4", "is 3", "one model only"]);
    let richer = part(1, 3, 5).tensor("a", &[4], F32, 0).data(16).bytes();
    says(&error(&[&first, &richer, &last]), &["file 2 of 3", "split.tensors.count is 5", "is 3"]);
    let whole = Writer::default().tensor("a", &[4], F32, 0).data(16).bytes();
    says(&error(&[&first, &whole, &last]), &["3 files", "number 2", "by itself"]);
    let again = part(1, 3, 3).tensor("c", &[4], F32, 0).data(16).bytes();
    says(&error(&[&first, &again, &last]), &["\"c\"", "twice"]);
    let none = part(1, 3, 3).bytes();
    says(&error(&[&first, &none, &last]), &["2 tensors", "instead of 3", "download"]);
}

#[test]
fn damaged_files_are_named_by_their_place() {
    let [first, middle, last] = three();
    says(&error(&[&first, &middle[..middle.len() - 1], &last]), &["3 files", "number 2", "truncated"]);
    says(&error(&[&first, &middle, b"PK\x03\x04"]), &["number 3", "not a GGUF file"]);
    says(&error(&[&part(3, 3, 3).bytes()]), &["split.no", "less than split.count"]);
    let nameless = Writer::default().pair(COUNT, 2, &[3, 0]).bytes();
    says(&error(&[&nameless]), &["split.no", "missing"]);
    let negative = Writer::default().pair(COUNT, 2, &[2, 0]).pair(NO, 2, &[0, 0]).pair(TENSORS, 5, &[255; 4]);
    says(&error(&[&negative.bytes()]), &["split.tensors.count", "-1"]);
}

#[test]
fn no_damage_makes_it_panic() {
    let files = three();
    for damaged in 0..3 {
        for at in 0..files[damaged].len() {
            for value in [0, 1, 3, 0x7f, 0xff] {
                let mut files = files.clone();
                files[damaged][at] = value;
                if let Err(error) = read(&[&files[0], &files[1], &files[2]]) {
                    let message = error.to_string();
                    assert!(!message.contains('\n') && message.len() < 400, "{message}");
                }
            }
        }
    }
}

#[test]
fn names_of_siblings() {
    let names = split_names("of-00001-of-00002-00002-of-00003.gguf").unwrap();
    assert_eq!(names.len(), 3);
    assert_eq!(names[0], "of-00001-of-00002-00001-of-00003.gguf");
    assert_eq!(split_names("-00001-of-00001.gguf").unwrap(), ["-00001-of-00001.gguf"]);
    assert_eq!(split_names("ä-00002-of-99999.gguf").unwrap().len(), 99_999);
    for other in [
        "m.gguf",
        "",
        "ä.gguf",
        "m-00000-of-00003.gguf",
        "m-00004-of-00003.gguf",
        "m-0001-of-00003.gguf",
        "m-00001-of-0000+.gguf",
        "m-+0001-of-00003.gguf",
        "m-00001-of-00003.bin",
        "äääääääääääääääääääää",
        "m00001-of-00003.gguf",
    ] {
        assert_eq!(split_names(other), None, "{other}");
    }
}

/// A source of any size with a given header, whose other bytes are generated when they are read.
struct Sparse {
    header: Vec<u8>,
    len: u64,
}

impl ByteSource for Sparse {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        assert!(offset + buf.len() as u64 <= self.len, "{offset}");
        for (at, byte) in (offset..).zip(buf) {
            *byte = usize::try_from(at).ok().and_then(|at| self.header.get(at)).copied().unwrap_or((at >> 30) as u8);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

#[test]
fn tensors_beyond_four_gibibytes() {
    let far = 5 << 30;
    let header =
        Writer::default().tensor("near", &[1 << 15, (far >> 17)], F32, 0).tensor("far", &[4], F32, far).bytes();
    let start = header.len().next_multiple_of(32) as u64;
    let file = |header: &Vec<u8>| Sparse { header: header.clone(), len: start + far + 16 };
    let gguf = read_from(&file(&header)).unwrap();
    let tensor = gguf.tensor("far").unwrap();
    assert_eq!((tensor.offset, tensor.bytes), (start + far, 16));
    assert_eq!(gguf.tensor("near").unwrap().bytes, far);
    let cut = read_from(&Sparse { header, len: start + far + 15 }).unwrap_err().to_string();
    says(&cut, &["truncated", &(start + far + 15).to_string(), &(start + far + 16).to_string()]);
}

#[test]
fn files_beyond_four_gibibytes_one_behind_the_other() {
    let far = 3 << 30;
    let file = |no| {
        let header = part(no, 3, 3).tensor(&format!("t{no}"), &[4], F32, far).bytes();
        let start = header.len().next_multiple_of(32) as u64;
        (start, Sparse { header, len: start + far + 16 })
    };
    let parts: [(u64, Sparse); 3] = [0, 1, 2].map(file);
    let start = parts[0].0;
    let source = Files(parts.map(|(_, file)| file).into());
    let gguf = read_from(&source).unwrap();
    let each = start + far + 16;
    for (i, tensor) in (0..).zip(&gguf.tensors) {
        assert_eq!(tensor.offset, i * each + start + far);
        let mut bytes = [0; 16];
        now(source.read_at(tensor.offset, &mut bytes)).unwrap();
        // The offset is that within the file, not within all files.
        assert_eq!(bytes, [3; 16]);
    }
    let error = now(source.read_at(3 * each, &mut [0; 1])).unwrap_err();
    says(&error.to_string(), &[&(3 * each).to_string(), "load whole files again"]);
}

/// A source that is larger than any disk.
struct Endless;

impl ByteSource for Endless {
    fn len(&self) -> u64 {
        u64::MAX
    }

    fn files(&self) -> Vec<u64> {
        vec![u64::MAX; 2]
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        let result = now(Sparse { header: three()[0].clone(), len: u64::MAX }.read_at(offset, buf));
        Box::pin(std::future::ready(result))
    }
}

#[test]
fn sizes_that_overflow_are_refused() {
    says(&read_from(&Endless).unwrap_err().to_string(), &["size of all files", "limit"]);
}

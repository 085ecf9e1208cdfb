//! Splits a file as `gguf-split` does, without interpreting it.

/// Reader of a file's header.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        let taken = &self.bytes[self.at..][..n];
        self.at += n;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> usize {
        u64::from_le_bytes(self.take(8).try_into().unwrap()) as usize
    }

    fn string(&mut self) -> &'a [u8] {
        let n = self.u64();
        self.take(n)
    }

    fn value(&mut self, kind: u32) {
        match kind {
            0 | 1 | 7 => drop(self.take(1)),
            2 | 3 => drop(self.take(2)),
            4..=6 => drop(self.take(4)),
            8 => drop(self.string()),
            9 => {
                let (kind, count) = (self.u32(), self.u64());
                (0..count).for_each(|_| self.value(kind));
            }
            _ => drop(self.take(8)),
        }
    }
}

/// A tensor: its description without the offset, and its data with padding.
type Tensor<'a> = (&'a [u8], &'a [u8]);

/// Splits a file. `counts` are the numbers of tensors in each file but the last, which has the rest.
pub fn split(whole: &[u8], counts: &[usize]) -> Vec<Vec<u8>> {
    let mut reader = Reader { bytes: whole, at: 8 };
    let (tensors, pairs) = (reader.u64(), reader.u64());
    let start = reader.at;
    for _ in 0..pairs {
        reader.string();
        let kind = reader.u32();
        reader.value(kind);
    }
    let metadata = &whole[start..reader.at];
    let mut found: Vec<(usize, &[u8])> = Vec::new();
    for _ in 0..tensors {
        let start = reader.at;
        reader.string();
        let dims = reader.u32() as usize;
        reader.take(8 * dims + 4);
        let info = &whole[start..reader.at];
        found.push((reader.u64(), info));
    }
    let data = &whole[reader.at.next_multiple_of(32)..];
    let ends = found.iter().map(|(start, _)| *start).skip(1).chain([data.len()]);
    let all: Vec<Tensor> = found.iter().zip(ends).map(|(&(start, info), end)| (info, &data[start..end])).collect();

    let mut left = &all[..];
    let sizes = counts.iter().copied().chain([all.len() - counts.iter().sum::<usize>()]);
    let files = sizes.enumerate().map(|(no, count)| {
        let (here, rest) = left.split_at(count);
        left = rest;
        let metadata = if no == 0 { (pairs, metadata) } else { (0, &[][..]) };
        file(metadata, [no, counts.len() + 1, all.len()], here)
    });
    files.collect()
}

/// Makes one file, with its number, the number of files, and the number of all tensors.
fn file((pairs, metadata): (usize, &[u8]), [no, count, all]: [usize; 3], tensors: &[Tensor]) -> Vec<u8> {
    let mut out = b"GGUF\x03\0\0\0".to_vec();
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((pairs as u64 + 3).to_le_bytes());
    out.extend(metadata);
    for (key, kind, value) in [
        ("split.no", 2u32, &(no as u16).to_le_bytes()[..]),
        ("split.count", 2, &(count as u16).to_le_bytes()),
        ("split.tensors.count", 5, &(all as i32).to_le_bytes()),
    ] {
        out.extend((key.len() as u64).to_le_bytes());
        out.extend(key.as_bytes());
        out.extend(kind.to_le_bytes());
        out.extend(value);
    }
    let mut offset = 0u64;
    for (info, data) in tensors {
        out.extend(*info);
        out.extend(offset.to_le_bytes());
        offset += data.len().next_multiple_of(32) as u64;
    }
    for (_, data) in tensors {
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(*data);
    }
    out
}

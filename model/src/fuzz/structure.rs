//! Mutation of a file's structure: values and tensors that are well-formed but wrong.

use super::random::Random;
use crate::gguf::writer::{Writer, string};

/// Bytes of a value of each type; 0 for strings and arrays.
const WIDTHS: [usize; 13] = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
pub(super) const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Makes a valid file with a few changed values and tensors; the same seed gives the same changes.
pub(super) fn input(file: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let Some(mut parts) = cut(file) else { return file.to_vec() };
    change(&mut parts, &mut random);
    parts.bytes()
}

/// Changes a few values and tensors.
pub(super) fn change(parts: &mut Writer, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        match random.below(3) {
            0 => tensor(parts, random),
            _ => pair(parts, random),
        }
    }
}

/// Changes the value of a key, its type, or its position.
fn pair(parts: &mut Writer, random: &mut Random) {
    if parts.pairs.is_empty() {
        return;
    }
    let at = random.below(parts.pairs.len());
    let key = 8 + length(&parts.pairs[at]);
    let kind = parts.pairs[at][key];
    match random.below(8) {
        0 => drop(parts.pairs.remove(at)),
        1 => {
            let copy = parts.pairs[at].clone();
            parts.pairs.push(copy);
        }
        // The value of another key.
        2 => {
            let other = &parts.pairs[random.below(parts.pairs.len())];
            let value = other[8 + length(other)..].to_vec();
            parts.pairs[at].splice(key.., value);
        }
        // The same type with another value.
        3..6 if u32::from(kind) != STRING && u32::from(kind) != ARRAY => {
            let value = random.number(64).to_le_bytes();
            let width = WIDTHS[usize::from(kind)];
            parts.pairs[at].splice(key + 4.., value[..width].to_vec());
        }
        // An array of one repeated value, or with fewer or more elements.
        3..6 if u32::from(kind) == ARRAY => {
            let element = parts.pairs[at][key + 4];
            let count = random.pick(&[0usize, 1, 3, 300, 70_000]);
            let one = value(u32::from(element).min(12), random);
            let bytes = [&[element, 0, 0, 0][..], &(count as u64).to_le_bytes(), &one.repeat(count)].concat();
            parts.pairs[at].splice(key + 4.., bytes);
        }
        _ => {
            let kind = random.pick(&[0u32, 4, 5, 6, 7, 8, 10, 12]);
            let value = [&kind.to_le_bytes()[..], &value(kind, random)].concat();
            parts.pairs[at].splice(key.., value);
        }
    }
}

/// Makes a hostile value of a type.
fn value(kind: u32, random: &mut Random) -> Vec<u8> {
    match kind {
        STRING | ARRAY => {
            let text = random.pick(&["", "a", "llama", "gpt2", "\u{0}", "\u{1f999}", "default", "{{ x }}", "<s>"]);
            string(text.repeat(1 << random.below(10)).as_bytes())
        }
        6 => random.pick(&[f32::NAN, f32::INFINITY, 0.0, -1.0, 1e-45, f32::MAX]).to_le_bytes().to_vec(),
        12 => random.pick(&[f64::NAN, f64::NEG_INFINITY, 0.0, -1.0, f64::MAX]).to_le_bytes().to_vec(),
        _ => random.number(64).to_le_bytes()[..WIDTHS[kind as usize]].to_vec(),
    }
}

/// Changes the dimensions, format or position of a tensor, or removes it.
fn tensor(parts: &mut Writer, random: &mut Random) {
    if parts.infos.is_empty() {
        return;
    }
    let at = random.below(parts.infos.len());
    let other = random.below(parts.infos.len());
    let info = &mut parts.infos[at];
    let dims = 8 + length(info);
    let count = usize::from(info[dims]);
    match random.below(6) {
        0 => drop(parts.infos.remove(at)),
        1 => parts.infos.swap(at, other),
        2 => {
            let dim = dims + 4 + 8 * random.below(count);
            if dim + 8 <= info.len() {
                info.splice(dim..dim + 8, random.number(32).to_le_bytes());
            }
        }
        3 => {
            let format = info.len() - 12;
            info.splice(format..format + 4, (random.below(48) as u32).to_le_bytes());
        }
        4 => {
            let offset = info.len() - 8;
            info.splice(offset.., random.number(64).to_le_bytes());
        }
        _ => {
            let renamed = parts.infos[other].clone();
            let name = 8 + length(&renamed);
            parts.infos[at].splice(..dims, renamed[..name].to_vec());
        }
    }
}

/// Reads the length at the beginning of a string.
pub(super) fn length(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length) as usize)
}

/// Splits a valid file into its parts.
pub(super) fn cut(file: &[u8]) -> Option<Writer> {
    let mut parts = Writer::default();
    let number = |at: usize| Some(u64::from_le_bytes(*file.get(at..)?.first_chunk()?) as usize);
    let word = |at: usize| Some(u32::from_le_bytes(*file.get(at..)?.first_chunk()?));
    let (tensors, pairs) = (number(8)?, number(16)?);
    let mut at = 24;
    for _ in 0..pairs {
        let kind = at + 8 + number(at)?;
        let mut end = kind + 4;
        let (element, count) = match word(kind)? {
            ARRAY => {
                end += 12;
                (word(kind + 4)?, number(kind + 8)?)
            }
            kind => (kind, 1),
        };
        for _ in 0..count {
            end += if element == STRING { 8 + number(end)? } else { *WIDTHS.get(element as usize)? };
        }
        parts.pairs.push(file.get(at..end)?.to_vec());
        at = end;
    }
    for _ in 0..tensors {
        let dims = at + 8 + number(at)?;
        let end = dims + 4 + 8 * word(dims)? as usize + 12;
        parts.infos.push(file.get(at..end)?.to_vec());
        at = end;
    }
    if tensors > 0 {
        parts.data = file.get(at.next_multiple_of(32)..)?.to_vec();
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_cut_where_they_are_written() {
        for file in crate::fuzz::seeds() {
            let parts = cut(&file).unwrap();
            assert!(parts.bytes() == file);
        }
    }
}

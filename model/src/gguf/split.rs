//! Split models, which consist of several files.
//!
//! Each file is a GGUF file with some of the tensors, and says its number and the number of files. The first one has
//! the model's metadata, and may have no tensors. Files are accepted in any order.
//!
//! *Source*: the tool `gguf-split` of the llama.cpp project.

#[cfg(test)]
mod tests;

use super::Gguf;
use super::error::GgufError;
use super::tensors::check_names;

/// Key of the file's number, from 0.
const NO: &str = "split.no";
/// Key of the number of files.
const COUNT: &str = "split.count";
/// Key of the number of tensors in all files together.
const TENSORS: &str = "split.tensors.count";

/// Number of missing files that a message names; further ones are only counted.
const LISTED: usize = 3;

/// Error of files that are not one complete model. Files are counted from 1, as in their names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// Some files of the model were not given.
    #[error(
        "the model lies in {count} files, of which these are missing: {missing}; keep all of them in one folder under \
         such names, or choose all of them at once"
    )]
    Missing {
        /// Number of files of the model.
        count: u64,
        /// Endings of the first missing files' names, and the number of further ones.
        missing: String,
    },
    /// A file was given more than once.
    #[error("file {file} of the split model is given twice; give each of its files once")]
    Twice {
        /// Number of the file.
        file: u64,
    },
    /// A file of another model.
    #[error(
        "file {file} of {count} belongs to another split model: its {key} is {found}, that of the first file given is \
         {expected}; give the files of one model only"
    )]
    Foreign {
        /// Number of the file in its own model.
        file: u64,
        /// Number of files of its own model.
        count: u64,
        /// Metadata key that differs.
        key: &'static str,
        /// Value in this file.
        found: u64,
        /// Value in the first given file.
        expected: u64,
    },
    /// One of several files is not part of a split model.
    #[error("of the {given} files that are given, number {index} is not part of a split model; load it by itself")]
    Whole {
        /// Position among the given files, from 1.
        index: usize,
        /// Number of files given.
        given: usize,
    },
    /// The files have too many tensors, or too few.
    #[error("the files of the split model have {found} tensors together instead of {expected}; download them again")]
    Tensors {
        /// Tensors of all files.
        found: u64,
        /// Count that the files declare.
        expected: u64,
    },
}

/// Position of a file in its split model.
struct Part {
    no: u64,
    count: u64,
    tensors: u64,
}

impl Part {
    /// Reads the position of a file; nothing if the file is a complete model.
    fn of(file: &Gguf) -> Result<Option<Part>, GgufError> {
        let metadata = &file.metadata;
        let Some(count) = metadata.get(COUNT)?.filter(|&count: &u64| count > 1) else { return Ok(None) };
        let (no, tensors) = (metadata.require(NO)?, metadata.require(TENSORS)?);
        if no >= count {
            let (key, found) = (NO.into(), format!("{no}, with {count} files"));
            return Err(GgufError::WrongValue { key, expected: "less than split.count", found });
        }
        Ok(Some(Part { no, count, tensors }))
    }
}

/// Joins files to one model, whose tensors have offsets in the whole source.
pub(super) fn join(files: Vec<Gguf>) -> Result<Gguf, GgufError> {
    let given = files.len();
    let mut parts = Vec::new();
    for (index, file) in (1..).zip(files) {
        match Part::of(&file).map_err(|error| error.in_file(index, given))? {
            None if given == 1 => return Ok(file),
            None => return Err(SplitError::Whole { index, given }.into()),
            Some(part) => parts.push((part, file)),
        }
    }
    check_same(&parts)?;
    backend_api::sort_by_key(&mut parts, |(part, _)| part.no);
    check_complete(&parts)?;
    let expected = parts.first().map_or(0, |(part, _)| part.tensors);
    let mut parts = parts.into_iter().map(|(_, file)| file);
    let Some(mut whole) = parts.next() else { return Err(GgufError::Magic { found: Vec::new() }) };
    whole.tensors.extend(parts.flat_map(|file| file.tensors));
    check_names(&whole.tensors)?;
    let found = whole.tensors.len() as u64;
    if found != expected {
        return Err(SplitError::Tensors { found, expected }.into());
    }
    Ok(whole)
}

/// Checks that all files belong to the same split model as the first one.
fn check_same(parts: &[(Part, Gguf)]) -> Result<(), SplitError> {
    let Some((first, _)) = parts.first() else { return Ok(()) };
    for (Part { no, count, tensors }, _) in parts {
        for (key, found, expected) in [(COUNT, *count, first.count), (TENSORS, *tensors, first.tensors)] {
            if found != expected {
                return Err(SplitError::Foreign { file: no + 1, count: *count, key, found, expected });
            }
        }
    }
    Ok(())
}

/// Checks that each file is there exactly once. `parts` is sorted, and of one split model.
fn check_complete(parts: &[(Part, Gguf)]) -> Result<(), SplitError> {
    if let Some(twice) = parts.windows(2).find(|two| two[0].0.no == two[1].0.no) {
        return Err(SplitError::Twice { file: twice[0].0.no + 1 });
    }
    let Some((Part { count, .. }, _)) = parts.first() else { return Ok(()) };
    let absent = count - parts.len() as u64;
    if absent == 0 {
        return Ok(());
    }
    let is_here = |no: &u64| parts.binary_search_by_key(no, |(part, _)| part.no).is_ok();
    let names = (0..*count).filter(|no| !is_here(no)).take(LISTED).map(|no| format!("*{}", ending(no + 1, *count)));
    let mut missing = names.collect::<Vec<_>>().join(", ");
    if let more @ 1.. = absent.saturating_sub(LISTED as u64) {
        missing += &format!(" and {more} more");
    }
    Err(SplitError::Missing { count: *count, missing })
}

/// Returns the ending of a file's name, which is counted from 1.
fn ending(file: u64, count: u64) -> String {
    format!("-{file:05}-of-{count:05}.gguf")
}

/// Returns the names of all files of a split model from the name of one of them, in order. Nothing if the name does not
/// end like `-00001-of-00005.gguf`.
pub fn split_names(name: &str) -> Option<Vec<String>> {
    let (prefix, end) = name.split_at_checked(name.len().checked_sub(ending(1, 1).len())?)?;
    let (file, count) = end.strip_prefix('-')?.strip_suffix(".gguf")?.split_once("-of-")?;
    let number = |digits: &str| digits.parse::<u64>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
    let (file, count) = (number(file)?, number(count)?);
    let same = (1..=count).contains(&file) && end == ending(file, count);
    same.then(|| (1..=count).map(|file| format!("{prefix}{}", ending(file, count))).collect())
}

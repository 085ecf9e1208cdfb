//! NumPy array files.
//!
//! *Source*: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays" (version 1.0).

use std::io::{self, Write};

/// Writes a C-ordered float32 matrix of `rows` x `cols`.
///
/// *Errors*: those of the writer.
pub fn write(out: &mut dyn Write, rows: usize, cols: usize, values: &[f32]) -> io::Result<()> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    // Magic, version and the length's two bytes are 10 bytes. Data begins at a multiple of 64, after a line break.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.push_str(&" ".repeat(padded - 1 - header.len()));
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(padded as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn header_is_aligned_and_says_what_follows() {
        let mut file = Vec::new();
        super::write(&mut file, 2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, -6.5]).unwrap();
        let len = usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!((10 + len) % 64, 0);
        assert_eq!(file.len(), 10 + len + 24);
        let header = std::str::from_utf8(&file[10..10 + len]).unwrap();
        assert!(header.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
        assert!(header.ends_with('\n'));
        assert_eq!(file[10 + len + 20..], (-6.5f32).to_le_bytes());
    }
}

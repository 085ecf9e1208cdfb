//! Word wrap for a terminal, of a text that is still being generated.

use unicode_width::UnicodeWidthChar;

/// Mark of a code block, whose lines are not wrapped.
const FENCE: &str = "```";

/// Word wrap of a text that comes in pieces. A word is held back until it is complete, because only then it is known
/// where it fits.
#[derive(Debug, Default)]
pub struct Wrap {
    /// Used columns of the current line.
    column: usize,
    /// Blanks after the last word. A line break replaces them.
    blanks: String,
    word: String,
    word_width: usize,
    /// Whether the word continues one that was too long to hold back.
    goes_on: bool,
    /// Whether the word is the first one of its line.
    begins_line: bool,
    /// Whether the text is in a code block.
    code: bool,
}

impl Wrap {
    /// Begins at the start of a line.
    pub fn new() -> Wrap {
        Wrap { begins_line: true, ..Wrap::default() }
    }

    /// Takes a piece. Returns the text that can be shown, in lines of `width` columns.
    pub fn push(&mut self, piece: &str, width: usize) -> String {
        let mut shown = String::new();
        for c in piece.chars() {
            match c {
                '\n' => {
                    self.place(width, &mut shown);
                    shown.push_str(&std::mem::take(&mut self.blanks));
                    shown.push('\n');
                    (self.column, self.begins_line, self.goes_on) = (0, true, false);
                }
                ' ' | '\t' => {
                    self.place(width, &mut shown);
                    self.blanks.push(c);
                    self.goes_on = false;
                }
                _ => {
                    let columns = c.width().unwrap_or(0);
                    // Scripts with wide characters do not have blanks. A line may end between any two of them.
                    if columns > 1 {
                        self.place(width, &mut shown);
                        self.goes_on = false;
                    }
                    self.word.push(c);
                    self.word_width += columns;
                    // The word is longer than a line, so the terminal breaks it.
                    if self.word_width >= width {
                        self.place(width, &mut shown);
                        self.goes_on = true;
                    }
                }
            }
        }
        shown
    }

    /// Returns the text that was held back.
    pub fn finish(&mut self, width: usize) -> String {
        let mut shown = String::new();
        self.place(width, &mut shown);
        shown.push_str(&std::mem::take(&mut self.blanks));
        shown
    }

    /// Writes the word to this line or the next one.
    fn place(&mut self, width: usize, shown: &mut String) {
        if self.word.is_empty() {
            return;
        }
        if self.begins_line && self.word.starts_with(FENCE) {
            self.code = !self.code;
        }
        let blanks = std::mem::take(&mut self.blanks);
        let indented = self.column + blanks.chars().map(|c| if c == '\t' { 8 } else { 1 }).sum::<usize>();
        let is_free = !self.code && !self.goes_on && self.column > 0;
        if is_free && indented + self.word_width > width {
            shown.push('\n');
            self.column = self.word_width;
        } else {
            shown.push_str(&blanks);
            self.column = indented + self.word_width;
            // The terminal has broken the word.
            if self.column > width {
                self.column = (self.column - 1) % width.max(1) + 1;
            }
        }
        shown.push_str(&std::mem::take(&mut self.word));
        (self.word_width, self.begins_line) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wraps a text to lines of a width, in pieces of this many characters.
    fn wrapped(text: &str, width: usize, piece: usize) -> String {
        let mut wrap = Wrap::new();
        let chars: Vec<char> = text.chars().collect();
        let mut shown: String =
            chars.chunks(piece).map(|piece| wrap.push(&piece.iter().collect::<String>(), width)).collect();
        shown += &wrap.finish(width);
        shown
    }

    #[test]
    fn lines_end_between_words_however_the_text_comes() {
        for (text, width, expected) in [
            ("once upon a time", 9, "once upon\na time"),
            ("once upon a time", 8, "once\nupon a\ntime"),
            ("once  upon", 6, "once\nupon"),
            ("  a list\n  of two ", 80, "  a list\n  of two "),
            ("a\n\nb", 1, "a\n\nb"),
            // A word that is longer than a line is broken by the terminal. Its end takes a part of a line.
            ("see abcdefghijkl now", 6, "see\nabcdefghijkl\nnow"),
            // Each of these takes two columns, and lines may end between them.
            ("\u{4e00}\u{4e8c}\u{4e09}\u{56db}", 5, "\u{4e00}\u{4e8c}\n\u{4e09}\u{56db}"),
            ("ab \u{1f600} cd", 5, "ab \u{1f600}\ncd"),
            // A combining accent does not take a column.
            ("cafe\u{301} au", 7, "cafe\u{301} au"),
            ("so:\n```sh\ncat a b c d e f\n```\ncat a b c", 6, "so:\n```sh\ncat a b c d e f\n```\ncat a\nb c"),
        ] {
            for piece in [1, 2, 3, 100] {
                assert_eq!(wrapped(text, width, piece), expected, "{width} {piece}");
            }
        }
    }

    #[test]
    fn what_is_held_back_is_less_than_a_line() {
        let mut wrap = Wrap::new();
        assert_eq!(wrap.push("a wor", 10), "a");
        assert_eq!(wrap.push("d ", 10), " word");
        assert_eq!(wrap.push("0123456789", 10), "\n0123456789");
        assert_eq!(wrap.push("x", 10), "");
        assert_eq!(wrap.finish(10), "x");
    }
}

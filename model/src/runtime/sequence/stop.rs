//! Stop strings, which may span several tokens.

/// Filter that holds back text which may be the beginning of a stop string.
#[derive(Debug)]
pub(crate) struct StopFilter {
    stops: Vec<String>,
    held: String,
    stopped: bool,
}

impl StopFilter {
    /// Makes a filter. Empty stop strings are ignored.
    pub fn new(stops: Vec<String>) -> StopFilter {
        StopFilter { stops, held: String::new(), stopped: false }
    }

    /// Takes more text, and appends to `out` what is final by now. Returns true once a stop string has come; the stop
    /// string and the text after it are not shown.
    pub fn push(&mut self, text: &str, out: &mut String) -> bool {
        if self.stopped {
            return true;
        }
        self.held.push_str(text);
        let stops = || self.stops.iter().filter(|s| !s.is_empty());
        if let Some(at) = stops().filter_map(|s| self.held.find(s.as_str())).min() {
            out.push_str(&self.held[..at]);
            self.held.clear();
            self.stopped = true;
            return true;
        }
        let undecided = |at: &usize| stops().any(|s| s.starts_with(&self.held[*at..]));
        let keep = self.held.char_indices().map(|(at, _)| at).find(undecided).unwrap_or(self.held.len());
        out.push_str(&self.held[..keep]);
        self.held.drain(..keep);
        false
    }

    /// Ends the text: appends the held rest.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (Vec<String>, bool) {
        let stops: Vec<String> = stops.iter().map(|s| s.to_string()).collect();
        let mut filter = StopFilter::new(stops);
        let mut shown = Vec::new();
        for piece in pieces {
            let mut out = String::new();
            let stopped = filter.push(piece, &mut out);
            shown.push(out);
            if stopped {
                return (shown, true);
            }
        }
        let mut rest = String::new();
        filter.finish(&mut rest);
        shown.push(rest);
        (shown, false)
    }

    #[test]
    fn strings_across_tokens_stop_and_are_not_shown() {
        let (shown, stopped) = run(&["END", ""], &["aE", "N", "Eb", "EN", "D rest"]);
        assert!(stopped);
        assert_eq!(shown, ["a", "", "ENEb", "", ""]);
        let (shown, stopped) = run(&["ü!", "x"], &["1ü", "2ü", "!"]);
        assert!(stopped);
        assert_eq!(shown, ["1", "ü2", ""]);
    }

    #[test]
    fn held_text_is_shown_at_the_end() {
        assert_eq!(run(&["END"], &["EN"]), (vec!["".into(), "EN".into()], false));
        assert_eq!(run(&[], &["EN"]), (vec!["EN".into(), "".into()], false));
    }
}

//! Rectangles of texels: what is drawn, and the bands that it is cut into.

use std::ops::Range;

/// A rectangle of texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Rect {
    pub(crate) fn texels(self) -> usize {
        self.width as usize * self.height as usize
    }

    /// Returns the intersection with another rectangle.
    pub(crate) fn within(self, other: Rect) -> Option<Rect> {
        let both = |a: u32, a_len: u32, b: u32, b_len: u32| {
            let from = a.max(b);
            (from, (a + a_len).min(b + b_len).saturating_sub(from))
        };
        let (x, width) = both(self.x, self.width, other.x, other.width);
        let (y, height) = both(self.y, self.height, other.y, other.height);
        (width > 0 && height > 0).then_some(Rect { x, y, width, height })
    }

    /// The lines, or of a single line the texels, that it can be cut into.
    pub(crate) fn units(self) -> u32 {
        if self.height > 1 { self.height } else { self.width }
    }

    /// Some of them.
    pub(crate) fn band(self, units: &Range<u32>) -> Rect {
        let (from, count) = (units.start, units.end.saturating_sub(units.start));
        match self.height > 1 {
            true => Rect { y: self.y + from, height: count, ..self },
            false => Rect { x: self.x + from, width: count, ..self },
        }
    }
}

//! Sorting with one sort for all types: each sort of the standard library takes 6 KB of what a page downloads.

/// Sorts by a number; equals stay in order.
pub fn sort_by_key<T>(items: &mut Vec<T>, key: impl Fn(&T) -> u64) {
    let mut order: Vec<(u64, usize)> = items.iter().map(key).zip(0..).collect();
    order.sort_unstable();
    let mut taken: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(order.into_iter().filter_map(|(_, at)| taken[at].take()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_stay_in_order() {
        let mut words = vec!["cc", "a", "bb", "", "b"];
        sort_by_key(&mut words, |word| word.len() as u64);
        assert_eq!(words, ["", "a", "b", "cc", "bb"]);
        sort_by_key(&mut words, |word| u64::MAX - word.len() as u64);
        assert_eq!(words, ["cc", "bb", "a", "b", ""]);
    }
}

//! The list of cases.

use backend_api::case::Case;
use backend_api::cases;

/// The cases of all operators and forms, or of one. The reference runs the operators of a form one by one.
pub fn cases(op: Option<&str>) -> Vec<Case> {
    let mut all = cases::all();
    all.retain(|case| op.is_none_or(|op| op == case.op));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_operator_has_cases_with_names_of_their_own() {
        let all = cases(None);
        for name in cases::names() {
            assert!(all.iter().any(|case| case.op == name), "{name} has no case");
        }
        let names: HashSet<_> = all.iter().map(|case| (case.op, case.name.as_str())).collect();
        assert_eq!(names.len(), all.len(), "two cases of one operator have the same name");
    }
}

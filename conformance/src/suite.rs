//! The list of cases.

use backend_api::Op;
use backend_api::case::Case;

/// The cases of all operators, or of one. The reference runs fused operators (but attention) as expansions, so those are
/// held to account by the same cases.
pub fn cases(op: Option<&str>) -> Vec<Case> {
    let mut cases = Op::all_cases();
    cases.retain(|case| op.is_none_or(|op| op == case.op));
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_operator_has_cases_with_names_of_their_own() {
        let cases = cases(None);
        for name in Op::NAMES {
            assert!(cases.iter().any(|case| case.op == *name), "{name} has no case");
        }
        let names: HashSet<_> = cases.iter().map(|case| (case.op, case.name.as_str())).collect();
        assert_eq!(names.len(), cases.len(), "two cases of one operator have the same name");
    }
}

//! The list of cases.

use backend_api::case::Case;
use backend_api::{Op, fuse};

/// The cases of all operators, or of one; those of fused operators a second time as their primitives, so that the
/// expansions are held to account like the kernels.
pub fn cases(op: Option<&str>) -> Vec<Case> {
    let mut cases = Op::all_cases();
    cases.retain(|case| op.is_none_or(|op| op == case.op));
    cases
}

/// The cases of fused operators whose expansion is to be compared with the operator's own kernel or definition.
pub fn expansions(op: Option<&str>) -> Vec<Case> {
    let fused = |case: &Case| case.graph.nodes().first().is_some_and(|node| fuse::is_fused(&node.op));
    let mut cases = cases(op);
    cases.retain(fused);
    for case in &mut cases {
        if let Ok(graph) = fuse::expand_all(&case.graph) {
            case.graph = graph;
            case.name.push_str(" (as primitives)");
        }
    }
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

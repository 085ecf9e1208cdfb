//! Weight formats and state codecs that a case goes through besides its operator. The tables of formats and codecs
//! are made of them.

use std::collections::BTreeSet;

use backend_api::DType;
use backend_api::case::Case;
use backend_api::op::Op;

/// A use of a weight format or a codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Role in the case: `get_rows`, `matvec` (a matmul of one row), `matmul`, `append` or `attention`.
    pub role: &'static str,
    /// The name of the format or codec.
    pub of: &'static str,
}

/// The uses of formats and codecs in a case, each once.
pub fn of(case: &Case) -> BTreeSet<Part> {
    let mut parts = BTreeSet::new();
    for node in case.graph.nodes() {
        let of_one_row = || node.outputs.iter().all(|id| case.graph.tensor(*id).shape.rows() == 1);
        let role = match &node.op {
            Op::GetRows(_) => "get_rows",
            Op::MatMul(_) if of_one_row() => "matvec",
            Op::MatMul(_) => "matmul",
            Op::Append(_) => "append",
            Op::Attention(_) => "attention",
            _ => continue,
        };
        parts.extend(node.inputs.iter().filter_map(|id| match case.graph.tensor(*id).dtype {
            DType::Packed(format) => Some(Part { role, of: format.name() }),
            DType::Coded(codec) => Some(Part { role, of: codec.spec().name }),
            DType::F32 | DType::I32 => None,
        }));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::cases;
    use backend_api::{Codec, Format};

    #[test]
    fn the_suite_goes_through_each_format_and_codec_in_every_role() {
        let parts: BTreeSet<Part> = cases(None).iter().flat_map(of).collect();
        for of in Format::ALL.iter().map(|format| format.name()) {
            for role in ["get_rows", "matvec", "matmul"] {
                assert!(parts.contains(&Part { role, of }), "{role} of {of}");
            }
        }
        for of in Codec::ALL.iter().map(|codec| codec.spec().name) {
            for role in ["append", "attention"] {
                assert!(parts.contains(&Part { role, of }), "{role} of {of}");
            }
        }
    }
}

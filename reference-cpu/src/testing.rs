//! For the conformance suite: the kernels that there can be, and those that its cases run.

use crate::fast;
use backend_api::shader::{Emitted, Known};
use backend_api::{Cover, DType, Form, Format, Graph, Op, Unsupported, cases, cover};
use std::collections::BTreeSet;

/// The kernels of the fast path, or the plain definitions alone, and those that each case runs.
///
/// *Errors*: a case that is refused.
pub fn kernels(fast: bool) -> Result<(Vec<Known>, Vec<Emitted>), String> {
    let matchers = if fast { fast::MATCHERS } else { &[] };
    let supports = |_: &Graph, cover: &Cover| match &cover.form {
        Form::Op(_) => Ok(()),
        form if fast::kernel(form).is_some() => Ok(()),
        form => Err(Unsupported { op: form.name().into(), reason: "its nodes are run one by one".into() }),
    };
    let mut emitted = Vec::new();
    for (case, data) in cases::all().iter().enumerate() {
        let covers =
            cover(&data.graph, matchers, &supports).map_err(|e| format!("{} [{}]: {e}", data.op, data.name))?;
        for cover in covers {
            let formats = cover.inputs.iter().filter_map(|id| match data.graph.tensor(*id).dtype {
                DType::Packed(format) => Some(decoder(format)),
                DType::F32 | DType::I32 | DType::Coded(_) => None,
            });
            let (decoders, flags) = (formats.collect(), BTreeSet::new());
            emitted.push(Emitted { kernel: cover.form.name(), flags, decoders, case });
        }
    }
    let forms = fast::KERNELS.iter().map(|(name, _)| *name).filter(|_| fast);
    let names: BTreeSet<&'static str> = Op::NAMES.iter().copied().chain(forms).collect();
    let known = |kernel| {
        // A kernel that reads weights reads those of every format.
        let weights = emitted.iter().any(|e: &Emitted| e.kernel == kernel && !e.decoders.is_empty());
        let formats = Format::ALL.iter().filter(|_| weights);
        Known { kernel, decoders: formats.map(|f| (decoder(*f), Default::default())).collect(), ..Known::default() }
    };
    Ok((names.into_iter().map(known).collect(), emitted))
}

/// Returns the name of the decoder of a format.
fn decoder(format: Format) -> String {
    format!("decoder {}", format.name())
}

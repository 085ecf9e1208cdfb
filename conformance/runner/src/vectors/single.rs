//! One operator: `case.json` and the C-ordered f32 or i32 arrays that it names.

use super::{Array, Done, MAX_ELEMENTS};
use anygpu_conformance::run::{Outcome, judge};
use anyhow::{Context, Result, bail, ensure};
use backend_api::compare::Values;
use backend_api::op::{
    ArgMax, Attention, Binary, BinaryKind, GetRows, Glu, GluKind, Index, Masking, MatMul, Norm, NormKind, Rope,
    RopeMode, RopeTable, Softmax, TopK, Unary, UnaryKind,
};
use backend_api::run::{NativeHost, Rig};
use backend_api::{Backend, DType, Graph, Kind, Op, StepParams};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// `case.json`.
#[derive(Debug, Deserialize)]
struct Description {
    op: String,
    #[serde(default)]
    params: Map<String, Value>,
    inputs: Vec<String>,
    outputs: Vec<String>,
    tolerance: f64,
}

/// Replays the case of a folder.
pub fn replay(folder: &Path, backend: &dyn Backend) -> Done {
    let label = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    match case(folder, backend) {
        Ok((op, outcome)) => (op, label, outcome),
        Err(error) => ("unreadable".into(), label, Outcome::Failed(format!("{error:#}"))),
    }
}

fn load(folder: &Path, name: &str) -> Result<Array> {
    ensure!(Path::new(name).components().count() == 1, "{name:?} is not a plain file name");
    let path = folder.join(name);
    let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    let npy = npyz::NpyFile::new(BufReader::new(file)).with_context(|| format!("{name} is not a .npy file"))?;
    ensure!(npy.order() == npyz::Order::C, "{name} is not in C order; save it with numpy.ascontiguousarray");
    let shape: Vec<usize> = npy.shape().iter().map(|d| *d as usize).collect();
    let len = npy.shape().iter().try_fold(1u64, |n, d| n.checked_mul(*d)).filter(|n| *n <= MAX_ELEMENTS);
    ensure!(len.is_some(), "{name} has too many elements");
    let dtype = npy.dtype().descr();
    let data = if dtype.contains("f4") {
        let values: Vec<f32> = npy.into_vec()?;
        values.as_slice().into()
    } else if dtype.contains("i4") {
        let values: Vec<i32> = npy.into_vec()?;
        Values { dtype: DType::I32, bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect() }
    } else {
        bail!("{name} has dtype {dtype}; float32 and int32 are read")
    };
    Ok(Array { shape, data })
}

fn case(folder: &Path, backend: &dyn Backend) -> Result<(String, Outcome)> {
    let text = std::fs::read_to_string(folder.join("case.json")).context("cannot read case.json")?;
    let description: Description = serde_json::from_str(&text).context("case.json is malformed")?;
    let inputs = description.inputs.iter().map(|n| load(folder, n)).collect::<Result<Vec<_>>>()?;
    let expected = description.outputs.iter().map(|n| load(folder, n)).collect::<Result<Vec<_>>>()?;
    let (operands, op, back) = translate(&description.op, &description.params, inputs)?;
    let mut graph = Graph::new();
    let mut ids = Vec::new();
    for (index, operand) in operands.iter().enumerate() {
        ids.push(graph.external(Kind::Input, format!("input{index}"), &operand.shape, operand.data.dtype)?);
    }
    for (index, id) in graph.push_multi(op, &ids)?.into_iter().enumerate() {
        graph.output(id, format!("output{index}"))?;
    }
    let shapes: Vec<Vec<usize>> =
        graph.externals().filter(|(_, t)| t.kind == Kind::Output).map(|(_, t)| t.shape.dims().collect()).collect();
    let mut rig = Rig::guarded(backend, &graph)?;
    for (index, operand) in operands.iter().enumerate() {
        rig.write(index, &operand.data.bytes)?;
    }
    let rows = operands[0].shape.first().copied().unwrap_or(1).max(1) as u32;
    rig.step(&StepParams::at(0, rows))?;
    let found = pollster::block_on(rig.results(&NativeHost::default()))?;
    let found: Vec<Values> =
        found.into_iter().zip(shapes).map(|(data, shape)| back(Array { shape, data }).data).collect();
    let expected: Vec<Values> = expected.into_iter().map(|a| a.data).collect();
    Ok((description.op, judge(&found, &expected, description.tolerance, false)))
}

/// Undoes what [`translate`] did to the layout.
type Back = Box<dyn Fn(Array) -> Array>;

fn number(params: &Map<String, Value>, name: &str, default: f64) -> Result<f64> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(flag)) => Ok(f64::from(u8::from(*flag))),
        Some(value) => value.as_f64().with_context(|| format!("the parameter {name} must be a number")),
    }
}

fn count(params: &Map<String, Value>, name: &str, default: usize) -> Result<usize> {
    let value = number(params, name, default as f64)?;
    ensure!(value >= 0.0 && value.fract() == 0.0 && value < 1e9, "the parameter {name} must be a count");
    Ok(value as usize)
}

fn text<'a>(params: &'a Map<String, Value>, name: &str) -> Result<&'a str> {
    params.get(name).and_then(Value::as_str).with_context(|| format!("the parameter {name} must be a text"))
}

/// The operator and operands for a case: layouts differ only where ours are token-major.
fn translate(op: &str, params: &Map<String, Value>, mut inputs: Vec<Array>) -> Result<(Vec<Array>, Op, Back)> {
    let same: Back = Box::new(|a| a);
    let eps = || Ok::<f32, anyhow::Error>(number(params, "eps", 1e-5)? as f32);
    let op = match op {
        "matmul" => Op::from(MatMul),
        "softmax" => Softmax {
            scale: number(params, "scale", 1.0)? as f32,
            softcap: 0.0,
            masking: Masking::default(),
            sinks: false,
        }
        .into(),
        "layer_norm" => Norm { kind: NormKind::Layer, eps: eps()?, heads: 1 }.into(),
        "rms_norm" => Norm { kind: NormKind::Rms, eps: eps()?, heads: 1 }.into(),
        "unary" => {
            let kind = text(params, "kind")?;
            let kind = UnaryKind::ALL.iter().copied().find(|k| k.name() == kind);
            Unary { kind: kind.context("unknown unary kind")? }.into()
        }
        "binary" => {
            let kind = text(params, "kind")?;
            let kind = BinaryKind::ALL.iter().copied().find(|k| k.name() == kind);
            Binary { kind: kind.context("unknown binary kind")? }.into()
        }
        "glu" => {
            let kind = text(params, "kind")?;
            let kind = GluKind::ALL.iter().copied().find(|k| k.name() == kind);
            Glu { kind: kind.context("unknown glu kind")? }.into()
        }
        "get_rows" => GetRows { index: Index::Ids }.into(),
        "argmax" => ArgMax.into(),
        "top_k" => TopK { k: count(params, "k", 1)? }.into(),
        "rope" => return rope(params, inputs),
        "attention" => return attention(params, inputs),
        other => bail!("case.json names the operator {other}, which vectors cannot name"),
    };
    for input in &mut inputs {
        // A scalar has one element.
        if input.shape.is_empty() {
            input.shape.push(1);
        }
    }
    Ok((inputs, op, same))
}

/// x [t, heads, d] is [t, heads * d] as it lies; the table is made for just the positions given.
fn rope(params: &Map<String, Value>, inputs: Vec<Array>) -> Result<(Vec<Array>, Op, Back)> {
    let [x, positions] = <[Array; 2]>::try_from(inputs).ok().context("rope takes x and positions")?;
    let [t, heads, d] = x.shape[..] else { bail!("x must be [t, heads, d]") };
    ensure!(positions.data.dtype == DType::I32 && positions.shape == [t], "positions must be [t] int32");
    let n_dims = count(params, "n_dims", d)?;
    let mode = match text(params, "mode")? {
        "normal" => RopeMode::Normal,
        "neox" => RopeMode::Neox,
        other => bail!("unknown rope mode {other}"),
    };
    let mut table = RopeTable::plain(n_dims, number(params, "freq_base", 10_000.0)? as f32);
    table.freq_scale = number(params, "freq_scale", 1.0)? as f32;
    let (words, _) = positions.data.bytes.as_chunks::<4>();
    let rows = table.rows(words.iter().map(|w| i32::from_le_bytes(*w).max(0) as u32));
    let bytes = rows.iter().flat_map(|v| v.to_le_bytes()).collect();
    let table = Array { shape: vec![t, n_dims], data: Values { dtype: DType::F32, bytes } };
    let x = Array { shape: vec![t, heads * d], data: x.data };
    Ok((vec![x, table], Rope { n_head: heads, n_dims, mode }.into(), Box::new(|a| a)))
}

/// q [h, m, d], k [hk, n, d], v [hk, n, dv] become token-major, and the result head-major again.
fn attention(params: &Map<String, Value>, inputs: Vec<Array>) -> Result<(Vec<Array>, Op, Back)> {
    ensure!(matches!(inputs.len(), 3 | 4), "attention takes q, k, v and perhaps a mask");
    ensure!(inputs[..3].iter().all(|a| a.shape.len() == 3), "q, k and v must be [heads, tokens, channels]");
    let (n_head, n_head_kv, d) = (inputs[0].shape[0], inputs[1].shape[0], inputs[0].shape[2]);
    let masking = Masking {
        causal: number(params, "causal", 0.0)? != 0.0,
        window: count(params, "window", 0)? as u32,
        cached: false,
        explicit: inputs.len() == 4,
    };
    let scale = number(params, "scale", 1.0 / (d as f64).sqrt())? as f32;
    let softcap = number(params, "softcap", 0.0)? as f32;
    let operands = inputs
        .into_iter()
        .map(|a| match a.shape[..] {
            [h, t, c] => Array { shape: vec![t, h * c], data: swap(&a.data, h, t, c) },
            _ => a,
        })
        .collect();
    let back: Back = Box::new(move |a| {
        let (t, c) = (a.shape[0], a.shape[1] / n_head);
        Array { shape: vec![n_head, t, c], data: swap(&a.data, t, n_head, c) }
    });
    Ok((operands, Attention { n_head, n_head_kv, scale, softcap, max_bias: 0.0, masking, sinks: false }.into(), back))
}

/// [a, b, c] to [b, a, c].
fn swap(data: &Values, a: usize, b: usize, c: usize) -> Values {
    let mut bytes = Vec::with_capacity(data.bytes.len());
    for j in 0..b {
        for i in 0..a {
            bytes.extend(&data.bytes[(i * b + j) * c * 4..][..c * 4]);
        }
    }
    Values { dtype: data.dtype, bytes }
}

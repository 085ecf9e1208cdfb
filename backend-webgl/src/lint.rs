//! Tests of the shader sources: the style that keeps them safe on all drivers, and validation of what is assembled.

use crate::dense::Fold;
use crate::gl::WEIGHT_UNIT;
use crate::lower::lower;
use crate::shader::{SOURCES, assemble};
use crate::{Layout, Tuning};
use backend_api::Op;
use std::collections::BTreeMap;

/// Layouts and tunings that make different shaders: those of a GPU, of the smallest device, and of software.
fn variants() -> [(Layout, Tuning); 4] {
    let software = Tuning::software("");
    [
        (Layout::Packed, Tuning::default()),
        (Layout::Packed, software),
        (Layout::Packed, Tuning { block_rows: 4, ..software }),
        (Layout::R32f, software),
    ]
}

/// Every distinct fragment shader of the conformance cases, by the name of its kernel.
fn assembled() -> BTreeMap<String, String> {
    let (mut found, lines) = (BTreeMap::new(), Tuning::default());
    for case in Op::all_cases() {
        for node in case.graph.nodes() {
            let outputs: Vec<_> = node.outputs.iter().map(|id| case.graph.tensor(*id)).collect();
            for (layout, tuning) in variants() {
                let operands = case.graph.operands(node);
                let Ok(kernel) = lower(&node.op, &operands, &outputs, layout, &tuning) else { continue };
                for draw in &kernel.draws {
                    // A sampler without a unit of its own would read another operand.
                    assert!(draw.dense.len() <= WEIGHT_UNIT as usize, "{} has too many operands", draw.shader);
                    found.insert(
                        draw.name(layout),
                        assemble(draw, layout, [&Fold::dense(2048, &lines), &Fold::weights(2048, 256, &lines)]),
                    );
                }
            }
        }
    }
    found
}

fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

#[test]
fn sources_keep_the_style() {
    // What is precise, dynamic or infinite on some drivers only.
    let forbidden = [
        "struct",
        "texture(",
        "textureLod",
        "mediump",
        "lowp",
        "isnan",
        "isinf",
        "unpackHalf",
        "dFdx",
        "varying",
        "1.0 / 0.0",
        "sin(",
        "cos(",
        "tanh(",
        "#extension",
    ];
    for (file, text) in SOURCES {
        assert!(text.starts_with("// "), "{file} does not say what it is");
        let code = code(text);
        for word in forbidden {
            let hit = code.match_indices(word).any(|(at, _)| {
                let before = code[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            });
            assert!(!hit, "{file} uses {word}");
        }
        for line in code.lines().filter(|line| line.contains("for (")) {
            let bound = line.split(';').nth(1).unwrap_or("");
            let constant =
                bound.split('<').nth(1).is_some_and(|b| b.trim_start_matches('=').trim().parse::<i32>().is_ok());
            assert!(!constant, "{file}: a loop with a constant bound may be unrolled: {line}");
        }
        assert!(text.lines().all(|line| line.len() <= 120), "{file} has long lines");
    }
}

#[test]
fn assembled_shaders_name_every_precision() {
    let shaders = assembled();
    assert!(shaders.len() > 100, "only {} shaders", shaders.len());
    for (name, text) in &shaders {
        assert!(text.starts_with("#version 300 es\n"), "{name}");
        for kind in ["float", "int", "sampler2D", "usampler2DArray"] {
            assert!(text.contains(&format!("precision highp {kind};")), "{name}: {kind}");
        }
        assert!(!text.contains("#include"), "{name} includes a file that does not exist");
        assert!(text.contains("void main()"), "{name} has no main");
    }
}

#[test]
#[cfg(not(target_arch = "wasm32"))]
fn assembled_shaders_are_valid() {
    use std::process::Command;
    let shaders = assembled();
    if Command::new("glslangValidator").arg("--version").output().is_ok() {
        let folder = std::env::temp_dir().join(format!("backend-webgl-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let mut command = Command::new("glslangValidator");
        for (i, (name, text)) in shaders.iter().enumerate() {
            let file = folder.join(format!("{i}.frag"));
            std::fs::write(&file, format!("{text}\n// {name}\n")).expect("the temporary folder can be written");
            command.arg(file);
        }
        let out = command.output().expect("the validator runs");
        std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
        println!("{} shaders validated by glslangValidator", shaders.len());
        return;
    }
    match crate::gl::Gl::open() {
        Ok(gl) => {
            for (name, text) in &shaders {
                gl.program(crate::shader::VERTEX, text).and_then(|p| p.finish(name)).expect("the driver compiles it");
            }
            println!("{} shaders compiled by {}", shaders.len(), gl.limits().renderer);
        }
        Err(error) => println!("not validated: {error}"),
    }
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What drivers are given changes on purpose only. `UPDATE_SHADERS=1 cargo test -p backend-webgl` records it anew.
#[test]
fn assembled_shaders_are_those_recorded() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/assembled.txt");
    let now: BTreeMap<String, String> =
        assembled().into_iter().map(|(name, text)| (name, format!("{:016x}", hash(&text)))).collect();
    if std::env::var_os("UPDATE_SHADERS").is_some() {
        let lines: String = now.iter().map(|(name, hash)| format!("{hash} {name}\n")).collect();
        std::fs::write(path, lines).expect("the record can be written");
    }
    let recorded = std::fs::read_to_string(path).expect("the record is committed");
    let mut known = 0;
    for (hash, name) in recorded.lines().filter_map(|line| line.split_once(' ')) {
        assert_eq!(now.get(name).map(String::as_str), Some(hash), "{name} changed; record it with UPDATE_SHADERS=1");
        known += 1;
    }
    assert!(known > 100, "the record has {known} shaders");
}

//! Tests of the shader sources: the style that keeps them safe on all drivers, and validation of what is assembled.

use crate::dense::Fold;
use crate::lower::{MATCHERS, lower};
use crate::shader::{SOURCES, assemble};
use crate::{Layout, Tuning};
use backend_api::shader::write_if_asked;
use backend_api::{cases, cover};
use std::collections::BTreeMap;
use std::path::Path;

/// Layouts and tunings that make different shaders: those of a GPU, of the smallest device, and of software.
fn variants() -> [(Layout, Tuning); 5] {
    let software = Tuning::software("");
    [
        (Layout::Packed, Tuning { joined_from: 0, ..Tuning::default() }),
        (Layout::Packed, software),
        (Layout::Packed, Tuning { block_rows: 4, ..software }),
        (Layout::R32f, software),
        (Layout::Bits, Tuning { blend: 0, ..Tuning::default() }),
    ]
}

/// Every distinct fragment shader of the conformance cases, in forms and in primitives, by the name of its kernel.
fn assembled() -> BTreeMap<String, String> {
    let (mut found, lines) = (BTreeMap::new(), Tuning::default());
    for case in cases::all() {
        let covers =
            [MATCHERS, &[]].map(|matchers| cover(&case.graph, matchers, &|_, _| Ok(())).expect("it is covered"));
        for cover in covers.iter().flatten() {
            for (layout, tuning) in variants() {
                let Ok(kernel) = lower(&case.graph, cover, layout, &tuning) else { continue };
                for draw in &kernel.draws {
                    found.insert(
                        draw.name(layout),
                        assemble(draw, layout, [&Fold::dense(2048, &lines), &Fold::weights(2048, 256, &lines)])
                            .expect("every variant assembles"),
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
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders").join(file);
        let whole = std::fs::read_to_string(path).expect("what is compiled is there");
        assert!(whole.starts_with("// "), "{file} does not say what it is");
        assert!(whole.lines().all(|line| line.len() <= 120), "{file} has long lines");
        let code = code(text);
        for word in forbidden {
            let hit = code.match_indices(word).any(|(at, _)| {
                let before = code[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            });
            assert!(!hit, "{file} uses {word}");
        }
        let takes_sampler = ["(sampler2D ", ", sampler2D ", "(usampler2D", ", usampler2D"];
        assert!(!takes_sampler.iter().any(|part| code.contains(part)), "{file}: a function takes a sampler");
        for line in code.lines().filter(|line| line.contains("for (")) {
            let bound = line.split(';').nth(1).unwrap_or("");
            let constant =
                bound.split('<').nth(1).is_some_and(|b| b.trim_start_matches('=').trim().parse::<i32>().is_ok());
            assert!(!constant, "{file}: a loop with a constant bound may be unrolled: {line}");
        }
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
        assert!(!text.contains("//!"), "{name} has a directive left");
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
    match crate::gl::Gl::open(true) {
        Ok(gl) => {
            // Looking for a device makes a context of each current in turn.
            let _entered = gl.enter().expect("the context is there");
            for (name, text) in &shaders {
                gl.program(crate::shader::VERTEX, text).and_then(|p| p.finish(name)).expect("the driver compiles it");
            }
            println!("{} shaders compiled by {}", shaders.len(), gl.limits().renderer);
        }
        Err(error) => println!("not validated: {error}"),
    }
}

#[test]
fn all_shaders_assemble() {
    let texts = assembled().into_iter().map(|(name, text)| (format!("{name}.glsl"), text)).collect();
    write_if_asked("webgl", &texts).expect("the folder can be written");
    assert!(texts.len() > 1_000, "only {} shaders", texts.len());
}

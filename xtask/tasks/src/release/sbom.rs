//! The bill of materials, in CycloneDX 1.5. It has neither a time nor a random number: the same release, the same
//! bytes.

use super::crates::{Crate, Id, Shipped};
use super::{digest, notices};
use crate::web::dist::{MODEL, WASM};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The bill of a release in a folder; `package` is its package.json, `rustc` the version of the compiler.
pub fn of(shipped: &Shipped, package: &Value, folder: &Path, rustc: &str) -> Result<Value> {
    let field = |name: &str| package.get(name).and_then(Value::as_str).with_context(|| format!("package.json: {name}"));
    let (name, version) = (field("name")?, field("version")?);
    let root = format!("pkg:npm/{name}@{version}");
    let license = |expression: &str| json!([{ "expression": expression }]);
    let mut components: Vec<Value> = shipped.crates.iter().map(component).collect();
    for (name, expression, _) in notices::OTHERS.iter().chain(notices::OF_SCRIPTS) {
        components.push(json!({
            "type": "library", "bom-ref": name, "name": name, "licenses": license(expression),
        }));
    }
    let mut files: Vec<String> = WASM.iter().map(|path| (*path).to_owned()).collect();
    files.sort();
    for path in &files {
        components.push(file(folder, path, "file", field("license")?)?);
    }
    // Trained for this project, see models/README.md.
    components.push(file(folder, MODEL, "machine-learning-model", "Apache-2.0")?);

    let of_modules: Vec<String> =
        shipped.direct.iter().map(purl).chain(notices::OTHERS.iter().map(|(name, ..)| (*name).to_owned())).collect();
    let of_scripts = notices::OF_SCRIPTS.iter().map(|(name, ..)| *name);
    let of_root: Vec<&str> = files.iter().map(String::as_str).chain([MODEL]).chain(of_scripts).collect();
    let mut dependencies = vec![json!({ "ref": root, "dependsOn": of_root })];
    dependencies.extend(files.iter().map(|path| json!({ "ref": path, "dependsOn": of_modules })));
    dependencies.extend(
        shipped
            .crates
            .iter()
            .map(|one| json!({ "ref": purl(&one.id()), "dependsOn": one.uses.iter().map(purl).collect::<Vec<_>>() })),
    );
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            // Whoever has it gets the same modules of the same sources.
            "tools": { "components": [{ "type": "application", "name": "rustc", "version": rustc }] },
            "component": {
                "type": "library", "bom-ref": root, "name": name, "version": version, "purl": root,
                "description": field("description")?, "licenses": license(field("license")?),
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn purl((name, version): &Id) -> String {
    // The only character of versions that such a URL has another meaning for.
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

fn component(one: &Crate) -> Value {
    let purl = purl(&one.id());
    json!({
        "type": "library", "bom-ref": purl, "name": one.name, "version": one.version, "scope": "required",
        "hashes": [{ "alg": "SHA-256", "content": one.sha256 }],
        "licenses": [{ "expression": one.license }], "purl": purl,
    })
}

/// A file of the release, with its digest.
fn file(folder: &Path, path: &str, kind: &str, license: &str) -> Result<Value> {
    let bytes = fs::read(folder.join(path)).with_context(|| format!("cannot read {path} of the release"))?;
    Ok(json!({
        "type": kind, "bom-ref": path, "name": path,
        "hashes": [{ "alg": "SHA-256", "content": digest(&bytes) }],
        "licenses": [{ "expression": license }],
    }))
}

#[cfg(test)]
mod tests {
    use super::super::crates;
    use super::*;
    use std::collections::BTreeSet;

    fn release() -> (tempfile::TempDir, Value) {
        let folder = tempfile::tempdir().unwrap();
        for path in WASM.iter().chain([&MODEL]) {
            fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
            fs::write(folder.path().join(path), path).unwrap();
        }
        let package = json!({ "name": "anygpu", "version": "1.2.3", "license": "MIT", "description": "A test." });
        (folder, package)
    }

    #[test]
    fn it_has_what_cyclonedx_asks_for_and_is_the_same_each_time() {
        let (folder, package) = release();
        let shipped = crates::shipped().unwrap();
        let bom = of(&shipped, &package, folder.path(), "1.90.0").unwrap();
        assert_eq!(bom, of(&shipped, &package, folder.path(), "1.90.0").unwrap());
        assert_eq!((&bom["bomFormat"], &bom["specVersion"]), (&json!("CycloneDX"), &json!("1.5")));
        let mut known = BTreeSet::from([bom["metadata"]["component"]["bom-ref"].as_str().unwrap()]);
        for component in bom["components"].as_array().unwrap() {
            assert!(component["type"].is_string() && component["name"].is_string(), "{component}");
            assert!(known.insert(component["bom-ref"].as_str().unwrap()), "{component} is there twice");
            for hash in component["hashes"].as_array().into_iter().flatten() {
                let content = hash["content"].as_str().unwrap();
                assert!(content.len() == 64 && content.bytes().all(|b| b.is_ascii_hexdigit()), "{component}");
            }
        }
        for Crate { name, version, .. } in &shipped.crates {
            assert!(known.contains(&*format!("pkg:cargo/{name}@{version}")), "{name} {version} is missing");
        }
        // All that is there is reached from the package.
        let depends: Vec<&Value> = bom["dependencies"].as_array().unwrap().iter().collect();
        let used: BTreeSet<&str> =
            depends.iter().flat_map(|d| d["dependsOn"].as_array().unwrap()).filter_map(Value::as_str).collect();
        let refs: BTreeSet<&str> = depends.iter().filter_map(|d| d["ref"].as_str()).collect();
        assert_eq!(refs.len(), depends.len());
        known.remove("pkg:npm/anygpu@1.2.3");
        assert_eq!(used, known);
    }
}

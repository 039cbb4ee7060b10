//! Surroundings of a run: the project, the work folder, the cores, and the invented catalog.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::load::INTERRUPTED;

/// The country whose products a page holds: `vitrine generate` gives it a third of all.
pub const COUNTRY: &str = "US";
/// The category that narrows it further.
pub const CATEGORY: &str = "fashion";
/// Number of single products that are asked for in turn.
const ASKED_FOR: usize = 1_000;

/// Settings that all contenders share.
#[derive(Clone)]
pub struct World {
    /// The project's folder.
    pub root: PathBuf,
    /// Folder in which the runner writes; emptied at its start.
    pub folder: PathBuf,
    /// The program that is measured.
    pub vitrine: PathBuf,
    /// The core that servers and databases run on, as `taskset` takes it.
    pub server_cores: String,
    /// The cores of everything else, as `taskset` takes them.
    pub other_cores: String,
    /// True if there are such cores beside the servers' own.
    pub has_spare_core: bool,
    /// Number of products.
    pub products: u64,
    /// Number of random letters that each of their names has more.
    pub letters: usize,
    /// The products, one a line, as `vitrine generate` prints them but for those letters.
    pub file: PathBuf,
    /// The codes of products asked for singly, spread over the catalog.
    pub asked_for: Vec<String>,
    /// The codes of products of `COUNTRY`, in order.
    pub in_country: Vec<String>,
    /// The codes of those of them that are of `CATEGORY` too.
    pub in_both: Vec<String>,
}

#[derive(Deserialize)]
struct Line {
    code: String,
    countries_redeemable_in: Vec<String>,
    categories: Vec<String>,
}

impl World {
    /// Empties the work folder, keeps the servers' core free of the runner and makes the products, each with so many
    /// random letters in its name.
    ///
    /// # Errors
    /// If a tool is missing or the folder can't be written.
    pub fn make(root: &Path, vitrine: &Path, products: u64, letters: usize) -> Result<Self> {
        let folder = root.join("target/bench/work");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).context("the old work folder can't be removed")?;
        }
        std::fs::create_dir_all(&folder)?;
        let cores = own_cores()?;
        let (server, others) = match cores.split_first() {
            Some((server, [])) => (*server, vec![*server]),
            Some((server, others)) => (*server, others.to_vec()),
            None => bail!("no core"),
        };
        let other_cores: Vec<String> = others.iter().map(usize::to_string).collect();
        let mut world = Self {
            root: root.to_owned(),
            file: folder.join("products.ndjson"),
            folder,
            vitrine: vitrine.to_owned(),
            server_cores: server.to_string(),
            other_cores: other_cores.join(","),
            has_spare_core: cores.len() > 1,
            products,
            letters,
            asked_for: Vec::new(),
            in_country: Vec::new(),
            in_both: Vec::new(),
        };
        let own = std::process::id().to_string();
        let pin = [
            "--all-tasks",
            "--cpu-list",
            "--pid",
            &world.other_cores,
            &own,
        ];
        done(Command::new("taskset").args(pin))?;
        let generated = match letters {
            0 => world.file.clone(),
            _ => world.folder.join("generated.ndjson"),
        };
        let out = File::create(&generated)?;
        let mut generate = Command::new(&world.vitrine);
        generate.args(["generate", "--products", &products.to_string()]);
        done(generate.stdout(out))?;
        if letters > 0 {
            renamed(&generated, &world.file, random_letters(letters))?;
        }
        world.read_codes()?;
        Ok(world)
    }

    /// The same for a server that may use every core.
    pub fn with_all_cores(&self) -> Self {
        Self {
            server_cores: format!("{},{}", self.server_cores, self.other_cores),
            ..self.clone()
        }
    }

    /// Names the cores of the load generator, beside the servers' one.
    pub fn load_generator_cores(&self) -> &'static str {
        match self.has_spare_core {
            true => "the others",
            false => "the same",
        }
    }

    /// Describes the machine, and the versions of the project and the program.
    ///
    /// # Errors
    /// If the program can't be run or the kernel tells nothing.
    pub fn machine(&self) -> Result<[String; 2]> {
        let processor = std::fs::read_to_string("/proc/cpuinfo")?;
        let processor = processor
            .lines()
            .find_map(|line| line.strip_prefix("model name"));
        let processor = processor.map_or("unknown processor", |name| {
            name.trim_start_matches([' ', '\t', ':'])
        });
        let cores = std::thread::available_parallelism()?.get() + usize::from(self.has_spare_core);
        let version = done(Command::new(&self.vitrine).arg("--version"))?;
        let git = |arguments: &[&str]| {
            done(
                Command::new("git")
                    .arg("-C")
                    .arg(&self.root)
                    .args(arguments),
            )
        };
        let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|_| "unknown".into());
        let changed = git(&["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
        let changed = match changed.is_empty() {
            true => "",
            false => " with changes",
        };
        let load = std::fs::read_to_string("/proc/loadavg").context("no load average")?;
        Ok([
            format!(
                "{cores} cores, {processor}; load average at the end {}.",
                load.split(' ').next().unwrap_or_default()
            ),
            format!("Commit {}{changed}: {}.", commit.trim(), version.trim()),
        ])
    }

    fn read_codes(&mut self) -> Result<()> {
        let mut all = BTreeSet::new();
        for line in BufReader::new(File::open(&self.file)?).lines() {
            let line: Line = serde_json::from_str(&line?)?;
            if line
                .countries_redeemable_in
                .iter()
                .any(|own| own == COUNTRY)
            {
                if line.categories.iter().any(|own| own == CATEGORY) {
                    self.in_both.push(line.code.clone());
                }
                self.in_country.push(line.code.clone());
            }
            all.insert(line.code);
        }
        self.in_country.sort_unstable();
        self.in_both.sort_unstable();
        let step = (all.len() / ASKED_FOR).max(1);
        self.asked_for = all.into_iter().step_by(step).take(ASKED_FOR).collect();
        if self.in_country.len() <= 500 {
            bail!("too few products for pages of 500: use --products 2000 or more");
        }
        Ok(())
    }
}

/// Copies products, each with something ahead of its name.
///
/// # Errors
/// If one has no name, or a file can't be read or written.
pub fn renamed(from: &Path, to: &Path, mut ahead: impl FnMut() -> String) -> Result<()> {
    const NAME: &str = "\"name\":\"";
    let mut out = BufWriter::new(File::create(to)?);
    for line in BufReader::new(File::open(from)?).lines() {
        let line = line?;
        let (start, rest) = line.split_once(NAME).context("a line without a name")?;
        writeln!(out, "{start}{NAME}{}{rest}", ahead())?;
    }
    Ok(out.flush()?)
}

/// So many letters each time, the same in each run: invented products are more alike than some real ones, and their
/// pages compress better.
fn random_letters(count: usize) -> impl FnMut() -> String {
    let mut random: u64 = 1;
    let mut letter = move || {
        // xorshift64: anything that doesn't compress will do.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        char::from(b'a' + (random % 26) as u8)
    };
    move || (0..count).map(|_| letter()).collect()
}

/// The cores that this process may use.
fn own_cores() -> Result<Vec<usize>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .context("the kernel doesn't say which cores there are")?;
    let mut cores = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cores.extend(first.parse::<usize>()?..=last.parse::<usize>()?);
    }
    Ok(cores)
}

/// A port of the loopback interface that nothing listens on.
///
/// # Errors
/// If there is none.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Runs a command to its end and gives what it printed.
///
/// # Errors
/// If it can't be started or fails; with what it said.
pub fn done(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(std::process::Stdio::piped())
        .output()
        .with_context(|| format!("can't run {command:?}"))?;
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    if !output.status.success() {
        bail!(
            "{command:?} ended with {}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(&output.stdout)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the path of a program: in `PATH`, or in one of `folders`.
pub fn find(program: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path);
    in_path
        .chain(folders.iter().cloned())
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

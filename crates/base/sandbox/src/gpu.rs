//! The host's GPUs, and leases on them that all runs of the machine respect.

use std::path::Path;
use std::time::Duration;

use infradev_supervise::Invocation;
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::locks::{Held, LockFolder};

/// A GPU's number: that of its device file `/dev/nvidia<N>`.
pub type GpuIndex = u32;

/// A GPU of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its number.
    pub index: GpuIndex,
    /// Its product name, `NVIDIA H200`; empty where the driver did not say.
    pub name: String,
    /// Its unique id, `GPU-…`; empty where the driver did not say.
    pub uuid: String,
    /// Memory in use, by anyone, in MiB.
    pub memory_used_mib: u64,
}

/// The GPUs of this host: device files, with what `nvidia-smi` says of them.
///
/// # Errors
/// `nvidia-smi` is there but could not be run.
pub fn list_gpus() -> Result<Vec<Gpu>, SandboxError> {
    let present = device_numbers(Path::new("/dev"));
    if present.is_empty() {
        return Ok(Vec::new());
    }
    let query = "--query-gpu=index,name,uuid,memory.used";
    let smi =
        Invocation::new("nvidia-smi").arg(query).arg("--format=csv,noheader,nounits").inherit_env("PATH");
    let said = match smi.deadline(Duration::from_secs(60)).run() {
        Ok(output) if output.status.success() => parse_smi(&String::from_utf8_lossy(&output.stdout)),
        Ok(_) | Err(infradev_supervise::SuperviseError::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let unknown = |index| Gpu { index, name: String::new(), uuid: String::new(), memory_used_mib: 0 };
    let known = |index| said.iter().find(|gpu| gpu.index == index).cloned();
    Ok(present.into_iter().map(|index| known(index).unwrap_or_else(|| unknown(index))).collect())
}

fn device_numbers(dev: &Path) -> Vec<GpuIndex> {
    let names = std::fs::read_dir(dev).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut numbers: Vec<_> =
        names.filter_map(|name| name.to_str()?.strip_prefix("nvidia")?.parse::<GpuIndex>().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn parse_smi(text: &str) -> Vec<Gpu> {
    let gpu = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [index, name, uuid, used] = fields[..] else { return None };
        let memory_used_mib = used.trim_end_matches(" MiB").parse().unwrap_or(0);
        Some(Gpu {
            index: index.parse().ok()?,
            name: name.to_owned(),
            uuid: uuid.to_owned(),
            memory_used_mib,
        })
    };
    text.lines().filter_map(gpu).collect()
}

/// GPUs that no other run on this machine uses while this lives.
#[derive(Debug)]
pub struct GpuLease {
    /// The numbers, ascending.
    pub indices: Vec<GpuIndex>,
    _held: Vec<Held>,
}

impl GpuLease {
    /// Waits until `count` of the GPUs `among` are free, and takes them. `waiting` is called with who holds what, once
    /// for the queue and once for the GPUs, if there is anything to wait for.
    ///
    /// Those who wait form a queue (a lock too), so that two runs that need several can't each hold one of them forever.
    ///
    /// # Errors
    /// More are asked for than there are, or the lock folder is unusable.
    pub async fn acquire(
        locks: &LockFolder,
        among: &[GpuIndex],
        count: usize,
        mut waiting: impl FnMut(&str),
    ) -> Result<GpuLease, SandboxError> {
        if count > among.len() {
            return Err(SandboxError::TooFewGpus { asked: count, present: among.len() });
        }
        if count == 0 {
            return Ok(GpuLease { indices: Vec::new(), _held: Vec::new() });
        }
        let _turn = match locks.try_lock(QUEUE)? {
            Some(held) => held,
            None => {
                waiting(&format!("waiting for GPUs behind {}", locks.holder(QUEUE)));
                first_free(locks, &[QUEUE.to_owned()], 1).await?.remove(0).1
            }
        };
        let mut taken = Vec::new();
        let mut busy = Vec::new();
        for index in among {
            if taken.len() == count {
                break;
            }
            match locks.try_lock(&name_of(*index))? {
                Some(held) => taken.push((name_of(*index), held)),
                None => busy.push(name_of(*index)),
            }
        }
        if taken.len() < count {
            let holders: Vec<_> = busy.iter().map(|name| format!("{name}: {}", locks.holder(name))).collect();
            waiting(&format!("waiting for {} of {}", count - taken.len(), holders.join("; ")));
            taken.extend(first_free(locks, &busy, count - taken.len()).await?);
        }
        let mut both: Vec<_> = taken
            .into_iter()
            .filter_map(|(name, held)| Some((name.strip_prefix("gpu-")?.parse::<GpuIndex>().ok()?, held)))
            .collect();
        both.sort_by_key(|(index, _)| *index);
        let (indices, held) = both.into_iter().unzip();
        Ok(GpuLease { indices, _held: held })
    }
}

const QUEUE: &str = "gpu-queue";

fn name_of(index: GpuIndex) -> String {
    format!("gpu-{index}")
}

/// The first `count` of these locks to become free.
async fn first_free(
    locks: &LockFolder,
    names: &[String],
    count: usize,
) -> Result<Vec<(String, Held)>, SandboxError> {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    for name in names {
        locks.lock_in_background(name, sender.clone())?;
    }
    drop(sender);
    let mut taken = Vec::new();
    while taken.len() < count {
        match receiver.recv().await {
            Some((name, held)) => taken.push((name, held?)),
            None => break,
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvidia_smi_lines_are_read() {
        let gpus = parse_smi("0, NVIDIA H200, GPU-aa, 4\n1, NVIDIA H200, GPU-bb, 1024\nbroken\n");
        assert_eq!(gpus.len(), 2);
        assert_eq!((gpus[1].index, gpus[1].uuid.as_str(), gpus[1].memory_used_mib), (1, "GPU-bb", 1024));
    }

    #[test]
    fn only_numbered_device_files_are_gpus() {
        let dev = tempfile::tempdir().unwrap();
        for name in ["nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "null"] {
            std::fs::write(dev.path().join(name), "").unwrap();
        }
        assert_eq!(device_numbers(dev.path()), [2, 10]);
    }

    #[tokio::test]
    async fn two_leases_never_share_a_gpu_and_the_second_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let locks = LockFolder::at(folder.path()).unwrap();
        let first =
            GpuLease::acquire(&locks, &[0, 1, 2], 2, |_| panic!("nothing to wait for")).await.unwrap();
        assert_eq!(first.indices, [0, 1]);
        let (said, heard) = tokio::sync::oneshot::channel();
        let mut said = Some(said);
        let (other_locks, our_locks) = (locks.clone(), locks);
        let second = tokio::spawn(async move {
            let tell = |text: &str| drop(said.take().map(|said| said.send(text.to_owned())));
            GpuLease::acquire(&other_locks, &[0, 1, 2], 2, tell).await
        });
        let text = heard.await.unwrap();
        assert!(text.contains(&format!("gpu-0: process {}", std::process::id())), "{text}");
        assert!(!second.is_finished());
        drop(first);
        let second = second.await.unwrap().unwrap();
        assert_eq!(second.indices.len(), 2);
        assert!(second.indices.contains(&2));
        drop(second);
        let all = GpuLease::acquire(&our_locks, &[0, 1, 2], 3, |_| ()).await.unwrap();
        assert_eq!(all.indices, [0, 1, 2]);
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let locks = LockFolder::at(folder.path()).unwrap();
        let first = GpuLease::acquire(&locks, &[0], 1, |_| ()).await.unwrap();
        {
            let waits = GpuLease::acquire(&locks, &[0], 1, |_| ());
            tokio::pin!(waits);
            let polled =
                std::future::poll_fn(|cx| std::task::Poll::Ready(waits.as_mut().poll(cx).is_pending())).await;
            assert!(polled);
        }
        drop(first);
        assert_eq!(GpuLease::acquire(&locks, &[0], 1, |_| ()).await.unwrap().indices, [0]);
    }

    #[tokio::test]
    async fn more_than_there_are_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let locks = LockFolder::at(folder.path()).unwrap();
        let error = GpuLease::acquire(&locks, &[0], 2, |_| ()).await.unwrap_err();
        assert!(matches!(error, SandboxError::TooFewGpus { asked: 2, present: 1 }));
    }
}

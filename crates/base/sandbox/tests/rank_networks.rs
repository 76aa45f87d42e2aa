//! Real network namespaces with real traffic.

use std::io::Read;
use std::time::Duration;

use infradev_sandbox::{LockFolder, RankNetworks, Sandbox, SandboxSpec, UidLease, examine};

const TRAFFIC: &str = "
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
UID = %UID%
def rank(number, work):
    if os.fork() == 0:
        assert libc.setns(10 + number, 0x40000000) == 0, ctypes.get_errno()
        os.setresgid(UID, UID, UID); os.setresuid(UID, UID, UID)
        work(); os._exit(0)
ready_r, ready_w = os.pipe()
def serve():
    s = socket.create_server(('10.77.0.1', 29500)); os.write(ready_w, b'x')
    c, _ = s.accept(); left = 4 << 20
    while left: left -= len(c.recv(65536))
    c.close()
def send():
    os.read(ready_r, 1)
    c = socket.create_connection(('10.77.0.1', 29500)); c.sendall(bytes(4 << 20)); c.shutdown(1); c.recv(1)
rank(0, serve); rank(1, send)
codes = [os.wait()[1] for _ in range(2)]
os.write(3, repr(codes).encode()); os.close(3)
os.read(4, 1)
";

#[tokio::test]
async fn what_each_rank_receives_is_counted_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let lease = UidLease::acquire(&LockFolder::at(folder.path()).unwrap()).unwrap();
    let networks = RankNetworks::create(3).unwrap();
    let before = networks.counters().unwrap();
    let mut spec = SandboxSpec::new("/usr/bin/python3");
    spec.args = vec!["-c".into(), TRAFFIC.replace("%UID%", &lease.uids.ranks_base.to_string()).into()];
    spec.uids = Some(lease.uids);
    spec.enters_networks = true;
    let (mut read, write) = std::io::pipe().unwrap();
    let (go_read, go_write) = std::io::pipe().unwrap();
    spec.fds = vec![(write.into(), 3), (go_read.into(), 4)];
    spec.fds.extend(networks.fds().unwrap().into_iter().zip(10..));
    let mut sandbox = Sandbox::start(spec).await.unwrap();
    let codes = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        read.read_to_string(&mut text).map(|_| text)
    });
    let codes = tokio::time::timeout(Duration::from_secs(60), codes).await.unwrap().unwrap().unwrap();
    assert_eq!(codes, "[0, 0]");
    let after = networks.counters().unwrap();
    let payload = 4u64 << 20;
    let received = after[0].received - before[0].received;
    assert!((payload..payload + payload / 20).contains(&received), "{received}");
    assert_eq!(after[1].sent - before[1].sent, received);
    assert!(after[1].received - before[1].received < payload / 20);
    assert!(after[2].received - before[2].received < 10_000, "the bridge does not flood");
    drop(go_write);
    assert!(sandbox.wait().await.unwrap().exit.success());
}

#[tokio::test]
async fn this_host_is_examined_for_real() {
    let checks = examine().await;
    let names: Vec<_> = checks.iter().map(|check| check.name).collect();
    assert_eq!(names, ["sandbox", "uid separation", "memory limits", "rank networks", "locks", "GPUs"]);
    for check in checks {
        // A host without root, control groups or a driver is told what to do.
        assert!(check.ok || (!check.required && check.hint.is_some()), "{check:?}");
        assert!(!check.ok || check.hint.is_none(), "{check:?}");
        assert!(!check.detail.is_empty());
    }
}

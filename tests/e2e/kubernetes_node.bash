#!/bin/bash
# kubernetes_node.bash FOLDER BIN GROUP: a node of Kubernetes without its API server, for kubernetes_node.bats: containerd and a
# kubelet, whose pods are the files in FOLDER/pods. It runs as the first process of its own mount, network, PID and UTS namespaces. Its
# state and logs are in FOLDER; BIN has its programs; its control groups are below GROUP.
set -eu
folder=$1 group=$3
PATH=$2:$PATH

umount /sys/fs/cgroup/unified 2>/dev/null || true
mount --make-rshared /
mount -t tmpfs tmpfs /run
mkdir -p /run/cdi "$folder"/{lib/kubelet,lib/containerd,log/pods,pods,sysctl}
mount --bind "$folder/lib" /var/lib
mount --bind "$folder/log" /var/log
# The kubelet sets these for the machine.
for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 \
	kernel/keys/root_maxbytes=25000000; do
	file=$folder/sysctl/${pair##*/}
	echo "${pair#*=}" >"${file%=*}"
	mount --bind "${file%=*}" "/proc/sys/${pair%=*}"
done
hostname node1
ip link set lo up 2>/dev/null || true

cat >"$folder/containerd.toml" <<'END'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "loadline.dev/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  enable_cdi = true
  cdi_spec_dirs = ["/run/cdi"]
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "native"
END
containerd --config "$folder/containerd.toml" >"$folder/log/containerd.log" 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.1; done
for image in "$folder"/images/*.tar; do
	ctr -n k8s.io images import --snapshotter native "$image"
done
cat >"$folder/kubelet.json" <<END
{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "staticPodPath": "$folder/pods",
 "fileCheckFrequency": "1s", "syncFrequency": "1s", "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
 "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs", "cgroupRoot": "$group", "failSwapOn": false, "readOnlyPort": 10255,
 "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1%", "imagefs.available": "1%"}}
END
remote=
case $(kubelet --version) in *v1.2[0-3].*) remote=--container-runtime=remote ;; esac
# It is started again when it ends, as an init does.
while :; do
	kubelet --config="$folder/kubelet.json" --hostname-override=node1 $remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock \
		>>"$folder/log/kubelet.log" 2>&1 &
	echo $! >/run/kubelet.pid
	touch "$folder/up"
	wait $! || true
done

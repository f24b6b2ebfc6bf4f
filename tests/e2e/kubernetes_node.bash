#!/bin/bash
# kubernetes_node.bash FOLDER BIN GROUP [cluster]: a node of Kubernetes without its API server, for kubernetes_node.bats: containerd and a
# kubelet, whose pods are the files in FOLDER/pods; or with it, etcd, the controller manager and the scheduler, for
# kubernetes_cluster.bats. It runs as the first process of its own mount, network, PID and UTS namespaces. Its state and logs are in
# FOLDER, the administrator's configuration in FOLDER/admin.json; BIN has its programs, or is folders with a colon between them; its
# control groups are below GROUP.
set -eu
folder=$1 group=$3 kind=${4-node}
PATH=$2:$PATH

umount /sys/fs/cgroup/unified 2>/dev/null || true
mount --make-rshared /
mount -t tmpfs tmpfs /run
mkdir -p /run/cdi "$folder"/{lib/kubelet,lib/containerd,log/pods,pods,sysctl,cni}
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

# Pods are in the node's own network; a node without a network for others is not ready.
echo '{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}' >"$folder/cni/none.conflist"
cat >"$folder/containerd.toml" <<END
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "loadline.dev/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  enable_cdi = true
  cdi_spec_dirs = ["/run/cdi"]
[plugins."io.containerd.grpc.v1.cri".cni]
  conf_dir = "$folder/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "native"
END
containerd --config "$folder/containerd.toml" >"$folder/log/containerd.log" 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.1; done
for image in "$folder"/images/*.tar; do
	ctr -n k8s.io images import --snapshotter native "$image"
done
# keep NAME COMMAND...: starts it again when it ends, as an init does.
keep() {
	local name=$1
	shift
	while :; do
		"$@" >>"$folder/log/$name.log" 2>&1 &
		echo $! >"/run/$name.pid"
		wait $! || sleep 0.2
	done
}

# config NAME TOKEN: FOLDER/NAME.json, by which programs know the API server.
config() {
	printf '{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
 "clusters": [{"name": "c", "cluster": {"server": "https://%s:6443", "certificate-authority": "%s"}}], "users": [{"name": "u", "user": {"token": "%s"}}]}' \
		"$api" "$folder/keys/ca.crt" "$2" >"$folder/$1.json"
}

# start_cluster: all of Kubernetes but the kubelet. What stands in FOLDER from an earlier start stays.
start_cluster() {
	local keys=$folder/keys admin=$folder/admin.json
	ip address add "$api/32" dev lo
	if ! [ -d "$keys" ]; then
		mkdir "$keys"
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=api -addext "subjectAltName=IP:$api" \
			-keyout "$keys/api.key" -out "$keys/ca.crt"
		openssl genrsa -out "$keys/accounts.key" 2048
		printf '%s,admin,1,system:masters\n%s,system:node:node1,2,system:nodes\n' "$(openssl rand -hex 16)" "$(openssl rand -hex 16)" >"$keys/tokens"
		config admin "$(sed -n '1s/,.*//p' "$keys/tokens")"
		config node "$(sed -n '2s/,.*//p' "$keys/tokens")"
	fi
	keep etcd etcd --data-dir "$folder/etcd" --listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync &
	keep kube-apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address="$api" --advertise-address="$api" \
		--tls-cert-file="$keys/ca.crt" --tls-private-key-file="$keys/api.key" --token-auth-file="$keys/tokens" --authorization-mode=Node,RBAC \
		--service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file="$keys/accounts.key" \
		--service-account-key-file="$keys/accounts.key" --service-cluster-ip-range=10.96.0.0/16 $gates &
	keep kube-controller-manager kube-controller-manager --kubeconfig="$admin" --leader-elect=false --use-service-account-credentials \
		--service-account-private-key-file="$keys/accounts.key" --root-ca-file="$keys/ca.crt" $gates &
	keep kube-scheduler kube-scheduler --kubeconfig="$admin" --leader-elect=false $gates &
	until kubectl --kubeconfig="$admin" get --raw /readyz; do sleep 0.2; done
}

# A kubelet before 1.24 must be told that the runtime is none of its own; one from 1.35 that control groups of version 1 will do.
api=10.90.0.1 gates=--feature-gates=DRAConsumableCapacity=true options=
case $(kubelet --version) in
*v1.1*.* | *v1.2[0-3].*) options=--container-runtime=remote more= ;;
*) more='"failCgroupV1": false,' ;;
esac
if [ "$kind" = cluster ]; then
	start_cluster >>"$folder/log/cluster.log" 2>&1
	options="--kubeconfig=$folder/node.json --node-ip=$api $gates"
else
	more="$more \"staticPodPath\": \"$folder/pods\","
fi
cat >"$folder/kubelet.json" <<END
{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", $more
 "fileCheckFrequency": "1s", "syncFrequency": "1s", "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
 "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs", "cgroupRoot": "$group", "failSwapOn": false, "readOnlyPort": 10255,
 "nodeStatusUpdateFrequency": "1s",
 "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1%", "imagefs.available": "1%"}}
END
touch "$folder/up"
# shellcheck disable=SC2086 # words
keep kubelet kubelet --config="$folder/kubelet.json" --hostname-override=node1 $options \
	--container-runtime-endpoint=unix:///run/containerd/containerd.sock

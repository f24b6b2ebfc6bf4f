# The short way in; meson and ninja do the work (meson setup build && ninja -C build).

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=
PART ?=

.PHONY: help deps build hold quick check check-all gpu-check install install-user uninstall slurm-plugin deb bundle release format clean

help:
	@echo 'make hold [ARGS=...]       install what is missing, build what hold runs, hold a card at 50 % (real, or else simulated)'
	@echo 'make check                 install what is missing, build, run the unit tests and the end-to-end tests of the main paths'
	@echo 'make quick                 the short tests and those of what changed: the inner loop'
	@echo 'make check-all             after check: the other tests, sanitizers, lints, services, packages, long soaks'
	@echo 'make gpu-check [PART=...]  run the tests and measurements that need an NVIDIA card'
	@echo 'make deps | build | format | clean'
	@echo 'make install | uninstall [PREFIX=/usr/local] [DESTDIR=]'
	@echo 'make install-user          install into ~/.local, for one user, without root'
	@echo 'make slurm-plugin SLURM=FOLDER  build spank_loadline.so in build-slurm for the Slurm whose headers are in FOLDER/slurm'
	@echo 'make deb                   install what is missing, build the Debian packages in build-deb'
	@echo 'make bundle                after it, one tar of them and of all that they need, for machines without internet'
	@echo 'make release               tag, tarball, packages, bundles, notes and sums of this version in build-release'

deps:
	@tools/deps build

$(BUILD)/build.ninja:
	meson setup $(BUILD) --prefix $(PREFIX)

build: $(BUILD)/build.ninja
	ninja -C $(BUILD)

# Messages in other languages than English: where there is GNU gettext.
hold: deps
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@echo 'Building what hold runs: about half a minute on two cores the first time.'
	@ninja -C $(BUILD) hold $$(ninja -C $(BUILD) -t query loadline-gmo >/dev/null 2>&1 && echo loadline-gmo)
	@tools/hold $(BUILD)/loadline $(ARGS)

quick:
	@tools/deps build check all
	@tools/check --quick

check:
	@tools/deps build check
	@tools/check

check-all:
	@tools/deps build check all deb
	@tools/check --all

gpu-check: deps
	@$(MAKE) --no-print-directory build
	@ninja -C $(BUILD) measurements
	@LOADLINE_BUILD=$(BUILD) bench/run $(PART)

install: build
	meson configure $(BUILD) -Dprefix=$(PREFIX)
	DESTDIR='$(DESTDIR)' meson install -C $(BUILD)

install-user: build
	@tools/install_user '$(BUILD)'

uninstall: $(BUILD)/build.ninja
	@tools/uninstall '$(BUILD)' '$(PREFIX)' '$(DESTDIR)'

# Slurm loads a plugin of its own series alone.
slurm-plugin:
	@test -e '$(SLURM)/slurm/spank.h' || { echo "make slurm-plugin SLURM=FOLDER: no slurm/spank.h in '$(SLURM)'" >&2; exit 1; }
	CPPFLAGS='-isystem $(abspath $(SLURM))' meson setup $$(test ! -d build-slurm || echo --wipe) build-slurm -Dslurm=enabled -Dtests=disabled --buildtype=release
	ninja -C build-slurm src/slurm/spank_loadline.so
	@echo "build-slurm/src/slurm/spank_loadline.so"

deb:
	@tools/deps build deb
	@tools/make_deb build-deb

bundle: deb
	@tools/make_bundle build-deb

release:
	@tools/deps deb all
	@tools/release bookworm trixie

format:
	@tools/check_format --fix

clean:
	rm -rf $(BUILD) build-check build-deb build-release

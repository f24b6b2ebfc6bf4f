# The short way in; meson and ninja do the work (meson setup build && ninja -C build).

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=
PART ?=

.PHONY: help deps build hold quick check check-all gpu-check install uninstall deb format clean

help:
	@echo 'make hold [ARGS=...]       install what is missing, build, hold a card at 50 % (real, or else simulated)'
	@echo 'make check                 install what is missing, run every test that needs no GPU'
	@echo 'make quick                 one build, the short tests and those of what changed: the inner loop'
	@echo 'make check-all             check, the long soaks, and every lint over every file'
	@echo 'make gpu-check [PART=...]  run the tests and measurements that need an NVIDIA card'
	@echo 'make deps | build | format | clean'
	@echo 'make install | uninstall [PREFIX=/usr/local] [DESTDIR=]'
	@echo 'make deb                   install what is missing, build the Debian packages in build-deb'

deps:
	@tools/deps build

$(BUILD)/build.ninja:
	meson setup $(BUILD) --prefix $(PREFIX)

build: $(BUILD)/build.ninja
	ninja -C $(BUILD)

hold: deps
	@$(MAKE) --no-print-directory build
	@tools/hold $(BUILD)/loadline $(ARGS)

check_how_quick = --quick
check_how_check-all = --all
check_needs_check-all = deb
quick check check-all:
	@tools/deps build check $(check_needs_$@)
	@tools/check $(check_how_$@)

gpu-check: deps
	@$(MAKE) --no-print-directory build
	@LOADLINE_BUILD=$(BUILD) bench/run $(PART)

install: build
	meson configure $(BUILD) -Dprefix=$(PREFIX)
	DESTDIR='$(DESTDIR)' meson install -C $(BUILD)

uninstall: $(BUILD)/build.ninja
	@tools/uninstall '$(BUILD)' '$(PREFIX)' '$(DESTDIR)'

deb:
	@tools/deps build deb
	@tools/make_deb build-deb

format:
	@tools/check_format --fix

clean:
	rm -rf $(BUILD) build-check build-deb

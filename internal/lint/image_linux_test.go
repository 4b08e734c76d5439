package lint

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// unpacked returns the files of an archive, by name.
func unpacked(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		require.Zero(t, h.Uid+h.Gid, h.Name)
		require.EqualValues(t, 1000000000, h.ModTime.Unix(), h.Name)
		if h.Typeflag == tar.TypeReg {
			files[filepath.Clean(h.Name)], err = io.ReadAll(r)
			require.NoError(t, err)
		}
	}
}

// descriptor names a blob of an image.
type descriptor struct {
	MediaType, Digest string
	Size              int
	Platform          struct{ Architecture, OS string }
}

// The image of a release is an OCI layout whose digests and sizes are right. Its
// entry point is the program. Equal arguments make equal bytes.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	program := []byte("#!/bin/sh\necho it runs\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "folder", "spinsim"), program, 0o700)) //nolint:gosec // it is a program
	pack := func() []byte {
		image := filepath.Join(dir, "image.tar")
		c := exec.Command("bash", "../../scripts/oci-image.sh", filepath.Join(dir, "folder"), image, "v1.2.3", "arm64", "1000000000")
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		data, err := os.ReadFile(image)
		require.NoError(t, err)
		return data
	}
	image := pack()
	require.Equal(t, image, pack())
	files := unpacked(t, image)
	require.JSONEq(t, `{"imageLayoutVersion":"1.0.0"}`, string(files["oci-layout"]))

	blob := func(d descriptor, mediaType string, v any) []byte {
		require.Equal(t, "application/vnd.oci.image."+mediaType, d.MediaType)
		data := files[filepath.Join("blobs/sha256", d.Digest[len("sha256:"):])]
		sum := sha256.Sum256(data)
		require.Equal(t, d.Digest, "sha256:"+hex.EncodeToString(sum[:]))
		require.Len(t, data, d.Size)
		if v != nil {
			require.NoError(t, json.Unmarshal(data, v))
		}
		return data
	}
	var index struct{ Manifests []descriptor }
	require.NoError(t, json.Unmarshal(files["index.json"], &index))
	require.Len(t, index.Manifests, 1)
	require.Equal(t, "arm64", index.Manifests[0].Platform.Architecture)
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	blob(index.Manifests[0], "manifest.v1+json", &manifest)
	require.Len(t, manifest.Layers, 1)
	var config struct {
		Architecture, OS string
		Config           struct{ Entrypoint []string }
		RootFS           struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	blob(manifest.Config, "config.v1+json", &config)
	require.Equal(t, "arm64 linux", config.Architecture+" "+config.OS)
	r, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0], "layer.v1.tar+gzip", nil)))
	require.NoError(t, err)
	layer, err := io.ReadAll(r)
	require.NoError(t, err)
	sum := sha256.Sum256(layer)
	require.Equal(t, []string{"sha256:" + hex.EncodeToString(sum[:])}, config.RootFS.DiffIDs)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "layer.tar"), layer, 0o600))
	require.NoError(t, exec.Command("tar", "-C", dir, "-xf", filepath.Join(dir, "layer.tar")).Run())
	out, err := exec.Command(filepath.Join(dir, config.Config.Entrypoint[0])).Output()
	require.NoError(t, err)
	require.Equal(t, "it runs\n", string(out))
}

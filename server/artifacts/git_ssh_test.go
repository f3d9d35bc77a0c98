package artifacts_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/test/tcpserver"
)

// serveSSH runs git's own upload-pack for clients with a key. It returns the address and the key
// of the host.
func (r gitRepository) serveSSH(t *testing.T, client ssh.PublicKey) (string, ssh.PublicKey) {
	t.Helper()
	return serveSSHCommands(t, client, func(command string, channel ssh.Channel) error {
		program, path, _ := strings.Cut(command, " ")
		cmd := exec.Command("git", strings.TrimPrefix(program, "git-"), filepath.Join(r.root, strings.Trim(path, "'/")))
		cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() { // like sshd, do not wait for the client's input
			_, _ = io.Copy(stdin, channel)
			stdin.Close()
		}()
		return cmd.Run()
	})
}

// serveSSHCommand answers clients with a key itself.
func serveSSHCommand(t *testing.T, client ssh.PublicKey, answer func(out io.Writer)) string {
	t.Helper()
	address, _ := serveSSHCommands(t, client, func(_ string, channel ssh.Channel) error {
		answer(channel)
		return nil
	})
	return address
}

// serveSSHCommands runs a function for each command of clients with a key.
func serveSSHCommands(t *testing.T, client ssh.PublicKey, run func(command string, channel ssh.Channel) error) (string, ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	hostKey, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(hostKey)
	return tcpserver.New(t, func(conn net.Conn) { serveSSHConn(conn, config, run) }), hostKey.PublicKey()
}

func serveSSHConn(conn net.Conn, config *ssh.ServerConfig, run func(command string, channel ssh.Channel) error) {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for newChannel := range channels {
		channel, requests, err := newChannel.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			var command struct{ Text string }
			isExec := request.Type == "exec" && ssh.Unmarshal(request.Payload, &command) == nil
			_ = request.Reply(isExec, nil)
			if !isExec {
				continue
			}
			status := struct{ Code uint32 }{0}
			if run(command.Text, channel) != nil {
				status.Code = 1
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
			channel.Close()
		}
	}
}

func TestSSHChecksKeysAndHosts(t *testing.T) {
	r := newGitRepository(t)
	dir := t.TempDir()
	public := writeSSHKey(t, dir+"/key", "")
	encrypted := writeSSHKey(t, dir+"/encrypted", "passphrase")
	writeSSHKey(t, dir+"/stranger", "")
	address, hostKey := r.serveSSH(t, public)
	encryptedAddress, encryptedHostKey := r.serveSSH(t, encrypted)
	otherKey := writeSSHKey(t, dir+"/other", "")
	writeFile(t, dir+"/known_hosts", knownhosts.Line([]string{address}, hostKey)+"\n"+knownhosts.Line([]string{encryptedAddress}, encryptedHostKey)+"\n")
	writeFile(t, dir+"/changed", knownhosts.Line([]string{address}, otherKey)+"\n")
	writeFile(t, dir+"/empty", "\n")
	account := func(name, key, hosts string) artifacts.GitAccount {
		return artifacts.GitAccount{Name: name, SSHKeyPath: dir + "/" + key, KnownHostsPath: dir + "/" + hosts}
	}
	trusting := account("trusting", "key", "empty")
	trusting.TrustUnknownHosts = true
	passphrase := account("passphrase", "encrypted", "known_hosts")
	passphrase.SSHKeyPassphrase = configfile.NewSecret("passphrase")
	script := dir + "/askpass"
	writeFile(t, script, "#!/bin/sh\necho passphrase\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	program := account("program", "encrypted", "known_hosts")
	program.SSHKeyPassphraseCommand = script
	noProgram := account("noprogram", "encrypted", "known_hosts")
	noProgram.SSHKeyPassphraseCommand = dir + "/missing"
	accounts := newAccounts(artifacts.Config{Limits: artifacts.Limits{TempDir: t.TempDir()}, Git: []artifacts.GitAccount{trusting, passphrase, program, noProgram,
		account("known", "key", "known_hosts"), account("unknown", "key", "empty"), account("changed", "key", "changed"),
		account("stranger", "stranger", "known_hosts"), account("nopassphrase", "encrypted", "known_hosts")}})
	for _, tt := range []struct{ name, address, want string }{
		{"known", address, ""},
		{"trusting", address, ""},
		{"passphrase", encryptedAddress, ""},
		{"program", encryptedAddress, ""},
		{"noprogram", encryptedAddress, "run the program " + dir + "/missing of the account"},
		{"unknown", address, "is not known: add it to sshKnownHostsFilePath"},
		{"changed", address, "is not known: add it to sshKnownHostsFilePath"},
		{"stranger", address, "unable to authenticate"},
		{"nopassphrase", encryptedAddress, "is not a usable SSH key"},
	} {
		text, err := fetch(t, accounts, artifact("git/repo", tt.name, "", "ssh://git@"+tt.address+"/repo.git"))
		if tt.want != "" {
			expectError(t, tt.name, err, "", tt.want)
			continue
		}
		if err != nil || !strings.Contains(entries(t, text), r.tip) {
			t.Errorf("%s: got %v, want commit %s", tt.name, err, r.tip)
		}
	}
}

func writeSSHKey(t *testing.T, path, passphrase string) ssh.PublicKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(pem.EncodeToMemory(block)))
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
